import { Button } from "@mantine/core";
import { Link } from "react-router";

import { Empty } from "../parts/Notices";
import { Page } from "../parts/Page";

export function NotFound() {
  return (
    <Page title="No such page">
      <Empty icon="question" title="There is nothing at this address" action={<Button component={Link} to="/">To the overview</Button>}>
        Check the address, or look for the job by its id or name with the search above.
      </Empty>
    </Page>
  );
}
