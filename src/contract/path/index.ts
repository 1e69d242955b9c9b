/**
 * Paths into objects: the one parser of Kubernetes' JSONPath, and what is found at the end of a path. MetricSources, printer columns
 * of the embedded API and profiles of inventory all read theirs here. Pure; neither part ever throws.
 */
export { readDecimal } from './decimal.ts'
export { findAll, findOne, MAX_MATCHES, type Matches, MISSING, ownValue, type View } from './find.ts'
export { MAX_SEGMENTS, type ParsedPath, type PathFault, parsePath, type Segment } from './path.ts'
