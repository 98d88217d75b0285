import { parse, wholeNumber } from "./json";

/** A form made from a JSON Schema: which fields to show, and the value that they add up to. */

export type Schema = {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  prefixItems?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  format?: string;
  minimum?: number;
  maximum?: number;
  $ref?: string;
  $defs?: Record<string, Schema>;
  [other: string]: unknown;
};

export type Field = { name: string; kind: "text" | "number" | "integer" | "boolean" | "choice" | "json"; required: boolean; optional: boolean; schema: Schema; choices: string[] };

/** The fields for the parameters of a function. */
export function fieldsOf(schema: Schema): Field[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, part]) => fieldOf(name, resolved(part, schema), required.has(name)));
}

function fieldOf(name: string, schema: Schema, required: boolean): Field {
  const options = schema.anyOf ?? schema.oneOf;
  const real = options?.filter((one) => one.type !== "null");
  const optional = Boolean(options && real && real.length < options.length);
  const only = real?.length === 1 ? { ...schema, ...real[0], anyOf: undefined, oneOf: undefined } : schema;
  const choices = Array.isArray(only.enum) ? only.enum.map(String) : [];
  return { name, kind: kindOf(only, choices), required, optional, schema: only, choices };
}

function kindOf(schema: Schema, choices: string[]): Field["kind"] {
  if (choices.length) return "choice";
  if (schema.type === "string") return "text";
  if (schema.type === "integer") return "integer";
  if (schema.type === "number") return "number";
  if (schema.type === "boolean") return "boolean";
  return "json";
}

/** What a reference within the schema stands for. */
function resolved(part: Schema, whole: Schema): Schema {
  const name = part.$ref?.split("/").at(-1);
  const found = name === undefined ? undefined : whole.$defs?.[name];
  return found ? { ...found, ...part, $ref: undefined } : part;
}

export type Entered = Record<string, string | boolean>;

/** What was entered, as arguments; or what is wrong with it, by field. */
export function valuesOf(fields: Field[], entered: Entered): { values: Record<string, unknown>; wrong: Record<string, string> } {
  const values: Record<string, unknown> = {};
  const wrong: Record<string, string> = {};
  for (const field of fields) {
    const raw = entered[field.name];
    if (field.kind === "boolean") {
      if (raw !== undefined) values[field.name] = raw === true || raw === "true";
      else if (field.required) values[field.name] = false;
      continue;
    }
    const text = typeof raw === "string" ? raw : "";
    if (text === "" && !(field.kind === "text" && field.required && raw !== undefined)) {
      if (field.required) wrong[field.name] = "needed";
      continue;
    }
    const [value, trouble] = valueOf(field, text);
    if (trouble) wrong[field.name] = trouble;
    else values[field.name] = value;
  }
  return { values, wrong };
}

function valueOf(field: Field, text: string): [unknown, string | null] {
  if (field.kind === "text") return [text, null];
  if (field.kind === "choice") return [field.schema.enum?.find((one) => String(one) === text), null];
  if (field.kind === "json") {
    try {
      return [parse(text), null];
    } catch {
      return [null, "not JSON: strings stand in double quotes"];
    }
  }
  const number = Number(text);
  if (!Number.isFinite(number)) return [null, "not a number"];
  if (field.kind === "integer" && !Number.isInteger(number)) return [null, "not a whole number"];
  return [wholeNumber(text), null];
}
