/** Shapes on the wire, by the names that the page uses. All come from the API's own description (`schema.d.ts`, made
 * anew whenever the page is checked), so that a change of the API that the page doesn't follow is found there. */
import type * as wire from "./schema";

/** Objects of any content: the description can't say more of them than that they are objects. */
type Anything = Record<string, unknown>;
type Open<T, Names extends keyof T> = Omit<T, Names> & { [Name in Names]: Anything | Extract<T[Name], null | undefined> };

/** An answer with a body, by its address. */
type Answered<Path extends keyof wire.paths> = wire.paths[Path] extends { get: { responses: { 200: { content: { "application/json": infer Body } } } } } ? Body : never;

export type Page<T> = { items: T[]; cursor: string | null };

export type Job = Open<wire.JobShape, "metadata">;
export type ErrorInfo = wire.ErrorInfo;
export type Why = wire.Why;
export type HistoryEntry = wire.Change;
export type Attempt = wire.Attempt;
export type Artifact = wire.Artifact;
export type Place = wire.Place;
export type ResultMeta = Answered<"/api/v1/jobs/{job_id}/result/meta">;
export type BatchItem = wire.BatchItem;
export type BatchAnswered = wire.BatchAnswer;
export type BulkAnswer = wire.BulkAnswer;

export type When = wire.ScheduleBody["schedule"];
export type Schedule = Omit<Open<wire.ScheduleShape, "job">, "schedule"> & { schedule?: When };
export type Fire = wire.Fire;
export type Occurrence = wire.Line;
export type Mark = wire.Mark;
export type Strip = wire.Strip;
export type FailurePage = wire.FailurePage;

export type Queue = wire.QueueShape;
export type Worker = wire.WorkerShape;
export type Stats = wire.Stats;
export type Point = wire.Point;
export type Period = "hour" | "day" | "week";
export type History = wire.HeadwayApiRoutesHistoryHistory;

export type Uploads = wire.Uploads;
export type Target = wire.TargetShape;
export type Probe = wire.Probed;
export type Secret = wire.SecretInfo;
export type User = wire.UserShape;
export type Token = wire.TokenShape;
export type NewToken = wire.NewTokenShape;
export type Role = wire.Role;
export type Session = wire.Me;
export type Permission = wire.Permission;
export type AuditLine = Open<wire.LineShape, "detail">;
export type Rule = wire.RuleShape;
export type Channel = Rule["channel"];
export type Message = wire.Notification;
export type FunctionInfo = Open<wire.FunctionInfo, "parameters" | "defaults">;
