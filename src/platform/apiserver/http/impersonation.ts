import { ApiError } from '../status.ts'
import { ANONYMOUS, AUTHENTICATED, accountGroups, accountOf, UNAUTHENTICATED, type User } from '../user.ts'
import { checkAttempt } from './authorize.ts'
import type { Call } from './call.ts'

const EXTRA = 'impersonate-extra-'
const AUTHENTICATION = 'authentication.k8s.io'

/**
 * As whom a request acts: the caller, or whom the Impersonate headers name, each part of it by the right to `impersonate` it.
 * @throws ApiError Forbidden where a part is not allowed; BadRequest where groups or extra come without a user
 */
export function actingAs(call: Call): User {
  const asked = readHeaders(call)
  if (!asked) return call.user
  const { name, groups, uid, extra } = asked
  const account = accountOf(name)
  const may = (group: string, resource: string, of: string, more: { namespace?: string; subresource?: string } = {}) =>
    checkImpersonation(call, { verb: 'impersonate', group, resource, name: of, ...more })
  if (account) may('', 'serviceaccounts', account.name, { namespace: account.namespace })
  else may('', 'users', name)
  for (const group of groups) may('', 'groups', group)
  for (const [key, values] of Object.entries(extra))
    for (const value of values) may(AUTHENTICATION, 'userextras', value, { subresource: key })
  if (uid) may(AUTHENTICATION, 'uids', uid)
  const given = groups.length > 0 || !account ? groups : accountGroups(account.namespace)
  return { name, groups: withStanding(name, given), ...(uid ? { uid } : {}), extra }
}

/** Everybody is either authenticated or not, whatever groups were asked for. */
function withStanding(name: string, groups: readonly string[]): readonly string[] {
  const isAnonymous = name === ANONYMOUS.name
  if (groups.includes(UNAUTHENTICATED) || (!isAnonymous && groups.includes(AUTHENTICATED))) return groups
  return [...groups, isAnonymous ? UNAUTHENTICATED : AUTHENTICATED]
}

/** kubectl does not read the Status of a refused discovery, but prints every warning. */
function checkImpersonation(call: Call, attempt: Parameters<typeof checkAttempt>[1]): void {
  try {
    checkAttempt(call, attempt)
  } catch (error) {
    if (error instanceof ApiError) call.warnings.push(error.message)
    throw error
  }
}

interface Asked {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid: string
  readonly extra: Readonly<Record<string, readonly string[]>>
}

function readHeaders({ request }: Call): Asked | undefined {
  const all = request.headersDistinct
  const names = Object.keys(all).filter((name) => name.startsWith('impersonate-'))
  if (names.length === 0) return undefined
  const extra: Record<string, string[]> = {}
  for (const header of names.filter((each) => each.startsWith(EXTRA)))
    extra[decodedKey(header.slice(EXTRA.length))] = valuesOf(all[header])
  const user = valuesOf(all['impersonate-user'])
  const [name = ''] = user
  if (user.length > 1 || name === '')
    throw new ApiError(
      'BadRequest',
      'who acts as another names one user: Impersonate-User is missing, empty or doubled',
    )
  return { name, groups: valuesOf(all['impersonate-group']), uid: valuesOf(all['impersonate-uid'])[0] ?? '', extra }
}

/** Names are sent as UTF-8; the parser reads bytes. */
function valuesOf(header: readonly string[] | undefined): string[] {
  try {
    return (header ?? []).map((value) => new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(value, 'latin1')))
  } catch (error) {
    throw new ApiError('BadRequest', 'an Impersonate header is not UTF-8', undefined, { cause: error })
  }
}

function decodedKey(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
