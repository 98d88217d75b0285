import { DateTimePicker } from "@mantine/dates";

type Props = { label: string; value: string; change: (wall: string) => void; error?: string };

/** What a clock shows ("2030-01-31 06:00"), chosen in a calendar. */
export function DayAndTime({ label, value, change, error }: Props) {
  return (
    <DateTimePicker
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
      popoverProps={{ withinPortal: true }}
    />
  );
}
