/**
 * Who asked for what and was refused, who signed in, who looked through whose eyes: one entry per request, to the log and,
 * where configured, to a hash-chained file and a capped Redis stream. A decision is answered once its entry is written. Recording
 * never fails a request; what a sink did not take is counted, logged, and named in the trail itself once the sink takes entries again.
 */
export { type AuditQuery, type AuditRecord, auditFileRecords, auditStreamRecords } from './read.ts'
export { AuditFileError, type AuditOptions, openAudit } from './trail.ts'
export type * from './types.ts'
export { type VerifyOptions, verifyAudit } from './verify.ts'
