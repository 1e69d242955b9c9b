/** Names of people and groups, as they may come from outside: what cannot be told apart by eye is not taken. */

export const maxNameLength = 512
export const maxGroups = 1000

// Controls, formats (bidi, zero width), lone surrogates, unassigned; line and paragraph separators.
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/u

/**
 * A name as it stands, or undefined: empty, too long, with blanks around, with characters that do not print, or in a form
 * that Unicode calls compatible with another (full-width letters, ligatures): it would look like somebody else.
 */
export function cleanName(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '' || value.length > maxNameLength) return undefined
  if (value.trim() !== value || unprintable.test(value) || value.normalize('NFKC') !== value) return undefined
  return value
}

/** Every one of them, each once; undefined where one is no name or there are too many: a group lost may be a Deny lost. */
export function cleanGroups(values: readonly unknown[]): readonly string[] | undefined {
  if (values.length > maxGroups) return undefined
  const groups = values.map(cleanName)
  return groups.includes(undefined) ? undefined : [...new Set(groups as string[])] // checked in this line
}

const serviceAccount = /^system:serviceaccount:[a-z0-9]([-a-z0-9]*[a-z0-9])?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/

/** `system:serviceaccount:<namespace>:<name>`, as Kubernetes writes it. */
export const isServiceAccountName = (name: string): boolean => serviceAccount.test(name)
