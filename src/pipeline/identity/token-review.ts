import type { Principal } from '#access'
import type { KubeClient } from '#kube'
import type { Clock } from '#model'
import { Lookups } from './lookups.ts'
import { cleanGroups, cleanName, isServiceAccountName } from './names.ts'
import { tokenKey } from './token.ts'

const path = '/apis/authentication.k8s.io/v1/tokenreviews'
const knownMs = 60_000
const refusedMs = 5000

/** What the hub's Kubernetes says of a token; null: not one of its own. */
export interface TokenReviewer extends Disposable {
  /** @throws IdentityUnavailableError where it does not say */
  review(token: string): Promise<Principal | null>
  forget(matches: (principal: Principal) => boolean): number
}

export function tokenReviewer(
  kube: KubeClient,
  { audiences = [] }: { readonly audiences?: readonly string[] },
  { clock, onFailure }: { readonly clock: Clock; readonly onFailure: (error: unknown) => void },
): TokenReviewer {
  const lookups = new Lookups<Principal | null>({
    clock,
    onFailure,
    ttlMs: (principal) => (principal ? knownMs : refusedMs),
  })
  return {
    // The token itself is needed for the question alone; what is kept is named by its hash.
    review: async (token) =>
      (await lookups.get(tokenKey(token), (signal) => reviewToken(kube, token, { audiences, signal }))).value,
    forget: (matches) => lookups.forgetWhere((principal) => principal !== null && matches(principal)),
    [Symbol.dispose]: () => lookups.close(),
  }
}

/**
 * Asks a Kubernetes whose token it is; null: none that it knows.
 * @throws KubeError where it does not say
 */
export async function reviewToken(
  kube: Pick<KubeClient, 'request'>,
  token: string,
  { audiences = [], signal }: { readonly audiences?: readonly string[]; readonly signal: AbortSignal },
): Promise<Principal | null> {
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token, ...(audiences.length > 0 && { audiences }) },
  }
  return readReview(await kube.request('POST', path, { body, signal }), audiences)
}

interface Review {
  readonly status?: {
    readonly authenticated?: unknown
    readonly audiences?: unknown
    readonly user?: { readonly username?: unknown; readonly groups?: unknown; readonly extra?: unknown }
  }
}

function readReview(answer: unknown, audiences: readonly string[]): Principal | null {
  const { status } = (answer ?? {}) as Review // every field is looked at below
  if (status?.authenticated !== true) return null
  // A server that knows no audiences answers "authenticated" to every one of its tokens: whoever asks must compare.
  const granted: readonly unknown[] = Array.isArray(status.audiences) ? status.audiences : []
  if (audiences.length > 0 && !audiences.some((audience) => granted.includes(audience))) return null
  const username = cleanName(status.user?.username)
  const groups = cleanGroups(Array.isArray(status.user?.groups) ? status.user.groups : [])
  const extra = extraOf(status.user?.extra)
  if (!username || !groups || !extra) return null
  const isServiceAccount = isServiceAccountName(username)
  return {
    ...{ username, email: '', groups, isServiceAccount, method: 'token-review' },
    ...(Object.keys(extra).length > 0 && { extra }),
  }
}

/** All of it or nothing: a scope that is lost is a right that is won. */
function extraOf(told: unknown = {}): Principal['extra'] | undefined {
  if (typeof told !== 'object' || told === null) return undefined
  const entries = Object.entries(told)
  const isRead = ([, values]: [string, unknown]) =>
    Array.isArray(values) && values.every((value) => typeof value === 'string')
  return entries.every(isRead) ? (Object.fromEntries(entries) as Principal['extra']) : undefined // checked in this line
}
