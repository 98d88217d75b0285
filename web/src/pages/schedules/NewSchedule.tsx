import { useNavigate } from "react-router";

import { Page } from "../../parts/Page";
import { ScheduleForm } from "./ScheduleForm";

export function NewSchedule() {
  const go = useNavigate();
  return (
    <Page title="New schedule">
      <ScheduleForm done={(made) => void go(made ? `/schedules/${made.id}` : "/schedules")} />
    </Page>
  );
}
