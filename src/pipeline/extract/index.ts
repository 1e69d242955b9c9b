/**
 * Objects of a cluster become rows of inventory, as profiles say it: JSONPath, CEL and Helm releases into attributes, whole
 * resources pruned, and every secret taken out before a path or an expression sees it. Pure and bounded: an object that cannot be
 * read fails by itself.
 *
 *   KollectProfile → compileProfile → Extractor: object → scrubbed view → attributes → row → canonical JSON
 */
export {
  compileProfile,
  type Extracted,
  type Extractor,
  type Failure,
  type Profile,
  type ProfileFault,
  type ProfileSpec,
} from './profile.ts'
export {
  canonicalJson,
  canonicalRow,
  compareRows,
  compareTexts,
  type ObjectRow,
  type Row,
  rowWithAttributes,
} from './row.ts'
export {
  compileSelection,
  HOME_OF_CLUSTER_OBJECTS,
  NAMESPACE_WATCH,
  type NamespaceFacts,
  type Selection,
  WATCH,
} from './select.ts'
