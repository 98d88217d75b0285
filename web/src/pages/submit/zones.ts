import { zone } from "../../lib/time";

/** Every zone that the browser knows, the reader's own and UTC first. */
export const zones: string[] = [...new Set([zone(), "UTC", ...Intl.supportedValuesOf("timeZone")])];
