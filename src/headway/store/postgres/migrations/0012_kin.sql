-- Who waits for a job, or did: asked from the parent's side.
create index parent_by_parent on headway.parent (parent_id);
