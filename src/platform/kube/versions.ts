const WHOLE_NUMBER = /^[1-9]\d*$/

/** Versions of one resource rise, as whole numbers; others cannot be compared. @see Kubernetes API concepts, "Resource versions" */
export const isComparable = (version: string): boolean => WHOLE_NUMBER.test(version)

/** Whether a version of a resource is older than another one; false where that is not known. */
export function isOlder(version: string, than: string): boolean {
  if (!isComparable(version) || !isComparable(than)) return false
  return version.length === than.length ? version < than : version.length < than.length
}
