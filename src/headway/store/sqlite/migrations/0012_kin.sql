-- Who waits for a job, or did: asked from the parent's side.
create index headway_parent_by_parent on headway_parent (parent_id);
