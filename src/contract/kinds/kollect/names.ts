/** Group of all kinds of inventory. */
export const KOLLECT_GROUP = 'kollect.dev'
/** Their only version. */
export const KOLLECT_VERSION = 'v1alpha1'
export const KOLLECT_API_VERSION = `${KOLLECT_GROUP}/${KOLLECT_VERSION}`

/** Annotation of a profile on Secrets: values of their data may be extracted. */
export const ALLOW_SECRET_EXTRACTION = `${KOLLECT_GROUP}/allow-secret-extraction`
/** Annotation of a profile on Secrets: whole ones may be embedded. */
export const ALLOW_FULL_RESOURCE_EXPORT = `${KOLLECT_GROUP}/allow-full-resource-export`

/** Annotation of a scope: `clip` leaves of a target what the scope allows; else a target that wants more is refused as a whole. */
export const SCOPE_EXCESS = `${KOLLECT_GROUP}/excess`
/** Finalizer of targets: their rows go first. */
export const TARGET_FINALIZER = `${KOLLECT_GROUP}/target-cleanup`

/** Namespace of the sinks that a cluster inventory names without one. */
export const DEFAULT_SINK_NAMESPACE = 'kollect-system'
/** Earliest repeat of identical content, where nothing is said. */
export const DEFAULT_EXPORT_INTERVAL = '30s'
/** Ceiling of one part of an export in bytes, where the process sets none. */
export const DEFAULT_MAX_EXPORT_BYTES = 1_572_864
/** References from one inventory to sinks, over all families. */
export const MAX_SINK_REFS = 20
/** Letters of all paths and expressions of one object: compiling what is longer would keep the API of others waiting. */
export const MAX_EXPRESSION_LETTERS = 65_536
