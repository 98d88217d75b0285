import { DateTimePicker } from "@mantine/dates";
import { useId } from "react";

type Props = { label: string; value: string; change: (wall: string) => void; error?: string };

/** What a clock shows ("2030-01-31 06:00"), chosen in a calendar. */
export function DayAndTime({ label, value, change, error }: Props) {
  const id = useId(); // shared, so that the calendar is named by the field that opens it
  return (
    <DateTimePicker
      id={id}
      label={label}
      placeholder="Choose"
      valueFormat="YYYY-MM-DD HH:mm"
      value={value || null}
      error={error}
      onChange={(wall) => change(wall?.slice(0, 16) ?? "")}
      weekendDays={[]}
      highlightToday
      timePickerProps={{ hoursInputLabel: "Hours", minutesInputLabel: "Minutes" }}
      submitButtonProps={{ "aria-label": "Take this time" }}
      popoverProps={{ withinPortal: true, id }}
      ariaLabels={{ previousMonth: "Previous month", nextMonth: "Next month", previousYear: "Previous year", nextYear: "Next year", previousDecade: "Previous decade", nextDecade: "Next decade", monthLevelControl: "Choose a month", yearLevelControl: "Choose a year" }}
    />
  );
}
