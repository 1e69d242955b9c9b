/** Who calls. */
export interface User {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  /** what else the one who vouches for the name says, such as the id of the credential */
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** How the API writes down who somebody is. */
export const userFields = ({ name, uid, groups, extra }: User) => ({
  username: name,
  ...(uid ? { uid } : {}),
  groups,
  ...(extra && Object.keys(extra).length > 0 ? { extra } : {}),
})

/** Whose members may do everything, whatever roles say. */
export const MASTERS = 'system:masters'
export const AUTHENTICATED = 'system:authenticated'
export const UNAUTHENTICATED = 'system:unauthenticated'

/** The name of who proves nothing. */
export const ANONYMOUS: User = { name: 'system:anonymous', groups: [UNAUTHENTICATED] }

const ACCOUNT = 'system:serviceaccount:'

export interface AccountName {
  readonly namespace: string
  readonly name: string
}

/** The user name of a service account. */
export const accountUser = ({ namespace, name }: AccountName): string => `${ACCOUNT}${namespace}:${name}`

/** The groups of every service account of a namespace. */
export const accountGroups = (namespace: string): string[] => [
  'system:serviceaccounts',
  `system:serviceaccounts:${namespace}`,
]

/** The service account of a user name; undefined where it is no such name. */
export function accountOf(user: string): AccountName | undefined {
  if (!user.startsWith(ACCOUNT)) return undefined
  const [namespace = '', name = '', ...more] = user.slice(ACCOUNT.length).split(':')
  if (more.length > 0 || namespace.length > 63 || name.length > 253) return undefined
  const isLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace)
  return isLabel && name.split('.').every((part) => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(part))
    ? { namespace, name }
    : undefined
}
