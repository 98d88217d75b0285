"""REST: the service's routes as one table. Each parses, calls a component, answers.

How it fits together, and where to add to it:

- A **route** is an entry of a table (`table.Route`): method, path, who may (`permission`), what it takes (`query`,
  `body`), what it answers, and its handler, `async def (call: Call) -> Response`. All that the documentation says of it
  is in the entry. To add routes, write a module with a list `ROUTES` and name it in `routes.MODULES`; there is nothing
  else to wire. A route without a permission stops the process from starting; one that anybody may use says `PUBLIC`.
- A **call** (`call.Call`) is what a handler gets: the principal, the query and the body as structs, the parts of the
  path, the way to the store (`await call.store(lambda store: …)`), and the `Service`: app, clock, kinds of jobs.
- **Who calls** is told by a `gate.Gatekeeper`: a request in, a `Principal` out, or `NotIdentified`.
- **What went wrong** is raised as an error of `model/errors.py`; `problems.py` says which status its code has, and
  makes problem details (RFC 9457) of it.
- The **document** (`openapi.py`) is made of the table and of the installed kinds of jobs, so it can't lag behind.
- The **server** (`server.py`) runs uvicorn inside the process's own loop; signals are the process's business.

Starlette and uvicorn have their home here; data is read and written by msgspec.
"""
