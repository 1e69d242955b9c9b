/**
 * The three patches of the Kubernetes API that do not know owners: JSON patch, merge patch and strategic merge patch.
 * Pure: a document and a patch give a new document that shares what did not change. All of a patch applies or nothing.
 * Every failure is a PatchError whose `status` and message can be answered as they are. Every patch is bounded: in
 * operations, in depth, and in what its copies may grow to.
 */
export { PatchError } from './error.ts'
export { applyJsonPatch } from './json-patch.ts'
export { applyMergePatch } from './merge-patch.ts'
export { applyStrategicPatch } from './strategic-patch.ts'
