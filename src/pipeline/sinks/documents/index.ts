/**
 * Snapshots as files: envelopes and lists of rows in parts, or a file for each row, at paths that templates say, and a list of what
 * an inventory owns, so that nobody takes away what is not theirs.
 *
 *   Delivery ─ planDocuments(what stands there) ─▶ files to write, files that go, the set manifest (last)
 *
 * Drivers bring the tree: a folder, a commit of git, a bucket.
 */
export { documentFormats } from './format.ts'
export { HeldPositions } from './held-positions.ts'
export { type DocumentLayout, layoutOf } from './layout.ts'
export { isListPath, partsPrefix, wholePath } from './paths.ts'
export { type DocumentPlan, everyFile, planDocuments, planMove, planRemoval, toldOf } from './plan.ts'
export type { DocumentFile } from './planned-files.ts'
export { previewDocuments } from './preview.ts'
export { type DocumentTree, ownerKey, type Standing, tooLarge } from './tree.ts'
