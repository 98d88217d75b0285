import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

/** The one accent: a quiet cyan, dark enough on white and light enough on slate to pass as text. */
const tide: MantineColorsTuple = [
  "#ecfeff",
  "#cff5fb",
  "#a5e8f3",
  "#6fd5e7",
  "#38bcd4",
  "#1a9fb8",
  "#127f97",
  "#11677d",
  "#155467",
  "#134151",
];

const slate: MantineColorsTuple = [
  "#e6eaf0",
  "#c9d1db",
  "#a4afbd",
  "#8390a1",
  "#3b4755",
  "#2e3945",
  "#1f2832",
  "#1a222b",
  "#151b23",
  "#0e1319",
];

export const theme = createTheme({
  primaryColor: "tide",
  primaryShade: 7, // white text passes on it, in light and dark
  colors: { tide, dark: slate },
  defaultRadius: "sm",
  fontFamily: 'Inter, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.25rem" },
  spacing: { xs: "0.375rem", sm: "0.625rem", md: "0.875rem", lg: "1.25rem", xl: "1.75rem" },
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "1.25rem", lineHeight: "1.4" },
      h2: { fontSize: "0.9375rem", lineHeight: "1.4" },
      h3: { fontSize: "0.8125rem", lineHeight: "1.4" },
    },
  },
  components: {
    Button: { defaultProps: { size: "xs" } },
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray" } },
    TextInput: { defaultProps: { size: "sm" } },
    Textarea: { defaultProps: { size: "sm" } },
    Select: { defaultProps: { size: "sm", checkIconPosition: "right" } },
    NumberInput: { defaultProps: { size: "sm" } },
    Tooltip: { defaultProps: { openDelay: 250, withArrow: true } },
    Modal: { defaultProps: { centered: true, closeButtonProps: { "aria-label": "Close" } } },
    Drawer: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
    SegmentedControl: { defaultProps: { size: "xs" } },
  },
});

/** Mantine's own greys fail the contrast that WCAG AA asks for; these pass on every surface that we use. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#f6f8fa",
    "--mantine-color-text": "#1b2430",
    "--mantine-color-dimmed": "#56616e",
    "--mantine-color-placeholder": "#616c7a",
    "--mantine-color-anchor": "#11677d",
    "--mantine-color-error": "#b3260b",
    "--mantine-color-gray-text": "#49535f",
    "--mantine-color-gray-light-color": "#3d4752",
    "--mantine-color-red-text": "#b3260b",
    "--mantine-color-red-filled": "#b3260b",
    "--mantine-color-red-filled-hover": "#952008",
    "--mantine-color-red-light-color": "#9c210a",
    "--mantine-color-tide-light-color": "#0f5a6e",
  },
  dark: {
    "--mantine-color-body": "#0e1319",
    "--mantine-color-text": "#dbe2ea",
    "--mantine-color-dimmed": "#9aa6b4",
    "--mantine-color-placeholder": "#8e9aa9",
    "--mantine-color-anchor": "#6fd5e7",
    "--mantine-color-error": "#ff9678",
    "--mantine-color-gray-text": "#c2cbd6",
    "--mantine-color-gray-light-color": "#d3dbe4",
    "--mantine-color-red-text": "#ff9678",
    "--mantine-color-red-filled": "#c5341a",
    "--mantine-color-red-filled-hover": "#a92c15",
    "--mantine-color-red-light-color": "#ffab93",
    "--mantine-color-tide-light-color": "#8fe0ee",
  },
});
