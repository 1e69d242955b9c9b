/**
 * Who owns which field: server-side apply, and the bookkeeping of all other writes in metadata.managedFields.
 *
 *   live + configuration ── merge ── without what its manager said before and says no longer ── new object
 *                              └── others own what changed? conflict, unless forced; then they lose it
 *
 * A set of fields is a tree (FieldsV1). Lists are owned as a whole, by value or by key, maps as a whole or field by field,
 * as the schema says; where it says nothing, lists are one thing and maps are not. Pure: time comes in as text.
 * @see Kubernetes documentation, "Server-Side Apply"
 */
export { ApplyConflictError, ApplyRefusedError, applyConfiguration } from './apply.ts'
export { trackUpdate } from './track.ts'
