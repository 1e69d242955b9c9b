import { LRUCache } from 'lru-cache'
import { CLUSTER_GROUP, REGISTER_GROUP } from '#kinds'
import type { KubeClient } from '#kube'
import { type Clock, FleetError, type HubUser, type LackedRights, type MemberDecision, seconds } from '#model'
import type { RequestIndex } from './request-index.ts'

const PATH = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
/** An answer counts this long: as soon a right that was taken away ends here. */
const KNOWN_MS = seconds(5)
const MAX_KNOWN = 4096
/** Questions on their way at once; whoever comes then is told to come again. */
const MAX_ASKED = 64
const TIMEOUT_MS = seconds(5)

/** One right at the hub's API, as a SubjectAccessReview asks for it. */
interface Right {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

/** Nobody can say now who may decide. */
class RightsUnknownError extends FleetError {
  override readonly name = 'RightsUnknownError'
  readonly code = 'rights_unknown'
  readonly retryable = true

  constructor(why: string, options?: ErrorOptions) {
    super(`whether you may decide about members cannot be found out now: ${why}`, options)
  }
}

export interface DecisionRightsOptions {
  readonly hub: KubeClient
  /** of the hub's own objects */
  readonly namespace: string
  readonly requests: Pick<RequestIndex, 'signersOf'>
  readonly clock: Clock
}

/**
 * Whether people may do at the hub's API what a decision does there, so that who decides on the page needs the rights the command of
 * the same name needs. Each right is asked for once in five seconds and person.
 */
export class DecisionRights {
  readonly #options: DecisionRightsOptions
  readonly #known = new LRUCache<string, { readonly at: number; readonly allowed: Promise<boolean> }>({
    max: MAX_KNOWN,
  })
  #asked = 0

  constructor(options: DecisionRightsOptions) {
    this.#options = options
  }

  readonly lacked: LackedRights = async (who, decision, cluster) => {
    const rights = this.#rightsFor(decision, cluster)
    const answers = await Promise.all(rights.map((right) => this.#has(who, right)))
    return rights.filter((_, place) => !answers[place]).map(wordsOf)
  }

  /** What the command of the same name does, no more and no less. */
  #rightsFor(decision: MemberDecision, cluster: string | undefined): readonly Right[] {
    const { namespace, requests } = this.#options
    const named = cluster === undefined ? {} : { name: cluster }
    const member = (verb: string): Right => ({ verb, ...CLUSTERS, ...named })
    if (decision === 'detach') return [member('get'), member('delete')]
    const signers = cluster === undefined ? [] : requests.signersOf(cluster, decision)
    const certificates: readonly Right[] = [
      { verb: 'list', ...REQUESTS },
      ...(cluster === undefined || signers.length > 0
        ? [{ verb: 'update', ...REQUESTS, subresource: 'approval' }]
        : []),
      ...signers.map((name) => ({ verb: 'approve', group: REQUESTS.group, resource: 'signers', name })),
    ]
    const membership: readonly Right[] = [
      ...[member('get'), member('patch')],
      { verb: 'update', group: REGISTER_GROUP, resource: 'managedclusters', subresource: 'accept', ...named },
    ]
    const secrets = (verb: string): Right => ({ verb, group: '', resource: 'secrets', namespace })
    const tokens = decision === 'revoke' ? [secrets('list'), secrets('delete')] : []
    return [...certificates, ...membership, ...tokens]
  }

  async #has(who: HubUser, right: Right): Promise<boolean> {
    const { clock } = this.#options
    const key = JSON.stringify([who.username, who.groups, who.extra, right])
    const known = this.#known.get(key)
    // A clock that was set back makes everything old.
    if (known && Math.abs(clock.now() - known.at) < KNOWN_MS) return known.allowed
    const entry = { at: clock.now(), allowed: this.#ask(who, right) }
    this.#known.set(key, entry)
    return entry.allowed.catch((error: unknown) => {
      if (this.#known.peek(key) === entry) this.#known.delete(key)
      throw error
    })
  }

  async #ask({ username: user, groups, extra }: HubUser, resourceAttributes: Right): Promise<boolean> {
    if (this.#asked >= MAX_ASKED) throw new RightsUnknownError('too many ask at once; try again shortly')
    this.#asked++
    try {
      const spec = { user, groups, ...(extra && { extra }), resourceAttributes }
      const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec }
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const answer = await this.#options.hub.request('POST', PATH, { body, contentType: 'application/json', signal })
      return (answer as { status?: { allowed?: unknown } }).status?.allowed === true
    } catch (error) {
      throw new RightsUnknownError(FleetError.from(error).message, { cause: error })
    } finally {
      this.#asked--
    }
  }
}

const CLUSTERS = { group: CLUSTER_GROUP, resource: 'managedclusters' }
const REQUESTS = { group: 'certificates.k8s.io', resource: 'certificatesigningrequests' }

/** As people say it to kubectl: `update managedclusters.register.open-cluster-management.io/accept`. */
function wordsOf({ verb, group, resource, subresource, namespace, name }: Right): string {
  const what = `${resource}${group && `.${group}`}${subresource ? `/${subresource}` : ''}`
  return `${verb} ${what}${name ? ` ${name}` : ''}${namespace ? ` in ${namespace}` : ''}`
}
