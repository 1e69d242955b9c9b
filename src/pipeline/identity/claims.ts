import type { Principal } from '#access'
import { TokenRefusedError } from './errors.ts'
import { cleanGroups, cleanName, isServiceAccountName } from './names.ts'
import type { ClaimNames } from './types.ts'

export type Claims = Readonly<Record<string, unknown>>

/**
 * The person behind verified claims. Strict where providers are not: a name is text, an address counts only with
 * `email_verified: true`, and names of Kubernetes itself (`system:`) come from nobody but the issuer's own subject.
 * @throws TokenRefusedError where the claims name nobody, or cannot be told apart from somebody else
 */
export function principalOf(claims: Claims, names: ClaimNames, method: 'oidc' | 'bearer-jwt'): Principal {
  const { prefix = '' } = names
  const subject = cleanName(claims.sub)
  if (!subject) throw new TokenRefusedError('the subject is no plain text')
  const name = usernameOf(claims, names.username)
  const isServiceAccount = method === 'bearer-jwt' && prefix === '' && name === subject && isServiceAccountName(name)
  if (prefix === '' && name.startsWith('system:') && !isServiceAccount)
    throw new TokenRefusedError('the user name is one of Kubernetes itself')
  const email = cleanName(claims.email) ?? ''
  return {
    username: prefix + name,
    email,
    emailVerified: email !== '' && claims.email_verified === true,
    groups: groupsOf(claims, names.groups ?? 'groups')
      .filter((group) => prefix !== '' || !group.startsWith('system:'))
      .map((group) => prefix + group),
    isServiceAccount,
    method,
  }
}

function usernameOf(claims: Claims, configured: string | undefined): string {
  for (const claim of configured === undefined ? ['preferred_username', 'email', 'sub'] : [configured]) {
    const value = claimAt(claims, claim)
    // An unproved address names nobody; among the defaults the next one does then.
    if (value === undefined || (claim === 'email' && claims.email_verified !== true)) continue
    const name = cleanName(value)
    if (!name) throw new TokenRefusedError(`the claim ${claim} is no plain name`)
    return name
  }
  throw new TokenRefusedError(`the claim ${configured ?? 'sub'} is missing or unproved`)
}

function groupsOf(claims: Claims, claim: string): readonly string[] {
  const value = claimAt(claims, claim)
  const elsewhere = claims._claim_names
  if (value === undefined && typeof elsewhere === 'object' && elsewhere !== null && claim in elsewhere)
    throw new TokenRefusedError('the groups are too many for the token: let the provider send fewer')
  if (value === undefined || value === null) return []
  const groups = cleanGroups(Array.isArray(value) ? value : [value])
  // One group lost may be the one that a Deny names.
  if (!groups) throw new TokenRefusedError(`the claim ${claim} is no list of plain names`)
  return groups
}

/** A claim by its whole name, or else along its dots (`realm_access.roles`). */
export function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const step of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Claims)[step] // an object, by the line above
  }
  return value
}
