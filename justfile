# The same names as in the Makefile, for those who like just.
_default:
    @make help

run:
    make run
dev:
    make dev
test *args:
    make test ARGS="{{args}}"
check:
    make check
format:
    make format
bench:
    make bench
prove *args:
    make prove ARGS="{{args}}"
image:
    make image
local:
    make local
cfn *context:
    make cfn CONTEXT="{{context}}"
stack *context:
    make stack CONTEXT="{{context}}"
