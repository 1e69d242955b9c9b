import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditEntry, AuditTrail } from '#audit'
import { API_CLIENT_SIGNER, Authority, AuthorityUnusableError, folderStore, isMemberCluster } from '#authority'
import {
  AUTHORITY_CONFIG_MAP,
  type AuthorityAct,
  certificateReconcilers,
  isPublished,
  type SignedRequest,
  STREAM_SIGNER,
  sayUnusable,
  secretStore,
} from '#certificates'
import { Manager } from '#controller'
import type { KubeClient } from '#kube'
import { minutes, seconds, systemClock } from '#model'
import type { RuleDecision } from '#registration'
import { type Metrics, type Part, retryForever } from '#runtime'
import type { Sealer } from '#sealing'
import type { AuthorityConfig } from './config-control-plane.ts'
import { harmedCopy } from './control-plane.ts'
import type { HubLogger } from './run.ts'

/** The listener of agents reads every second whose certificates count: who renews just then must not be a stranger to it. */
const HEARD_WITHIN_MS = seconds(30)
const KEY_PLACE = { kind: 'CertificateAuthority', name: 'clusterpulse-members' }

/** What was taken away under a running hub is noticed so soon. */
const LOOK_MS = seconds(2)
/** The same of the Secret of a hub on Kubernetes. */
const KEEP_MS = seconds(5)

/** The hub's CA in the data folder, once it is open. */
export interface MemberAuthority {
  /** Called once nobody else has the folder, and before the API listens, which knows members by it. */
  open(sealer: Sealer): Promise<Authority>
  get(): Authority
  /** Keeps it in the data folder as long as the hub runs. */
  readonly keeping: Part
  /** The one that this start made in a folder whose hub had one before; undefined: none was made, or the hub is new. */
  madeAnew(): AuthorityAct | undefined
}

export function memberAuthority(options: {
  readonly dataDir: string
  readonly config: AuthorityConfig
  readonly logger: HubLogger
}): MemberAuthority {
  const { dataDir, config, logger } = options
  let opened: Authority | undefined
  let madeAnew: AuthorityAct | undefined
  let keeping: ReturnType<typeof keptNowAndThen> | undefined
  const controlPlane = join(dataDir, 'control-plane')
  return {
    async open(sealer) {
      const store = folderStore(join(controlPlane, 'authority'), harmedCopy(logger))
      const wasHere = existsSync(join(controlPlane, 'admin.token'))
      const isMissing = (await store.read()) === undefined
      opened = await Authority.open({
        store,
        sealer: {
          seal: (plain) => sealer.seal(plain, KEY_PLACE),
          open: (sealed) => sealer.open(sealed, KEY_PLACE),
          isCurrent: (sealed) => sealer.isCurrent(sealed),
        },
        ...config,
        activeAfterMs: HEARD_WITHIN_MS,
        logger: logger.child({ part: 'authority' }),
      })
      if (wasHere && isMissing) madeAnew = { act: 'authority_made', id: opened.roots().at(-1)?.id.slice(0, 16) ?? '' }
      return opened
    },
    madeAnew: () => madeAnew,
    keeping: {
      name: 'authority',
      start() {
        keeping = keptNowAndThen(() => opened?.keep(), LOOK_MS)
        return Promise.resolve()
      },
      stop: async () => keeping?.stop(),
    },
    get() {
      if (!opened) throw new Error('the authority is not open yet')
      return opened
    },
  }
}

/** Runs it again and again, one after the other. @param keep must not reject */
function keptNowAndThen(
  keep: () => Promise<void> | undefined,
  everyMs: number,
): { readonly stop: () => Promise<void> } {
  let looking: Promise<void> | undefined
  const timer = setInterval(() => {
    looking ??= keep()?.finally(() => {
      looking = undefined
    })
  }, everyMs)
  return {
    async stop() {
      clearInterval(timer)
      await looking
    },
  }
}

/** Signs what is approved at the embedded API, where no controller of Kubernetes does. */
export function memberCertificates(options: {
  readonly authority: () => Authority
  readonly hub: () => KubeClient
  readonly namespace: string
  /** opened later than the first request may be signed */
  readonly trail: () => Pick<AuditTrail, 'record'> | undefined
  readonly metrics: Metrics
  readonly logger: HubLogger
}): Part {
  const { namespace, metrics } = options
  const logger = options.logger.child({ part: 'certificates' })
  let manager: Manager | undefined
  return {
    name: 'certificates',
    async start() {
      const signers = [API_CLIENT_SIGNER, STREAM_SIGNER]
      const onSigned = (request: SignedRequest) => options.trail()?.record(auditEntryOf(request, systemClock.now()))
      const parts = {
        onSigned,
        onAct: (act: AuthorityAct) => options.trail()?.record(auditEntryOfAuthority(act, systemClock.now())),
        hub: options.hub(),
        authority: options.authority(),
        namespace,
        signers,
        metrics,
        logger,
      }
      manager = new Manager({ name: 'certificates', controllers: certificateReconcilers(parts), logger })
      await manager.start()
    },
    stop: async () => manager?.stop(),
  }
}

export interface SigningOnKubernetes {
  readonly config: AuthorityConfig
  readonly hub: () => KubeClient
  readonly namespace: string
  readonly trail: () => Pick<AuditTrail, 'record'>
  readonly metrics: Metrics
  readonly logger: HubLogger
}

/** Whoever takes members' certificates has heard of a new CA by then. */
const ACTIVE_AFTER_MS = minutes(1)

/**
 * Signs agents of the hub's stream by its own CA, kept in a Secret, until the signal aborts; for the one that leads. What asks the API's
 * signer of clients is signed by the platform. Never rejects: while the Secret cannot be used, what is approved waits.
 */
export async function signOnKubernetes(
  { config, hub, namespace, trail, metrics, ...options }: SigningOnKubernetes,
  signal: AbortSignal,
): Promise<void> {
  const logger = options.logger.child({ part: 'certificates' })
  const key = { namespace, name: AUTHORITY_CONFIG_MAP }
  const store = secretStore(hub(), key)
  const say = (why: string | undefined) =>
    sayUnusable(hub(), key, why, signal).catch((error: unknown) => {
      if (!signal.aborted) logger.warn({ err: error }, 'the ConfigMap of the CAs could not be written')
    })
  let hadOne = false
  /** Whether a CA was lost is known before another one is made. */
  const open = async (): Promise<Authority> => {
    hadOne = (await store.read()) === undefined && (await isPublished(hub(), key))
    return Authority.open({ store, ...config, logger })
  }
  try {
    const authority = await retryForever(
      (attempt) =>
        open().catch(async (error: unknown) => {
          if (attempt % 10 === 0)
            logger.error(
              { err: error },
              `members that are approved wait for their certificates: the hub's CA in the Secret ${namespace}/${AUTHORITY_CONFIG_MAP} cannot be used`,
            )
          if (error instanceof AuthorityUnusableError)
            await say(
              `the hub's CA in the Secret ${namespace}/${AUTHORITY_CONFIG_MAP} cannot be used: ${error.message}`,
            )
          throw error
        }),
      { clock: systemClock, signal, fromMs: seconds(1), toMs: seconds(30) },
    )
    await say(undefined)
    if (hadOne) {
      const made: AuthorityAct = { act: 'authority_made', id: authority.roots().at(-1)?.id.slice(0, 16) ?? '' }
      trail().record(auditEntryOfAuthority(made, systemClock.now()))
      logger.error(
        made,
        `the Secret ${namespace}/${AUTHORITY_CONFIG_MAP} with the CA of members is gone, and another CA was made: what the former one signed counts no more; put the Secret back from a backup and restart the manager, or let the members join anew`,
      )
    }
    const controllers = certificateReconcilers({
      ...{ hub: hub(), namespace, authority, signers: [STREAM_SIGNER], activeAfterMs: ACTIVE_AFTER_MS },
      onSigned: (request) => trail().record(auditEntryOf(request, systemClock.now())),
      onAct: (act) => trail().record(auditEntryOfAuthority(act, systemClock.now())),
      ...{ metrics, logger },
    })
    const manager = new Manager({ name: 'certificates', controllers, logger })
    await manager.start()
    const keeping = keptNowAndThen(() => authority.keep(), KEEP_MS)
    if (!signal.aborted) await once(signal, 'abort')
    await keeping.stop()
    await manager.stop()
  } catch (error) {
    if (!signal.aborted) logger.error({ err: error }, 'the signing of members ended unexpectedly')
  }
}

/** What the audit trail says of a request that was approved: who asked, and what the hub made of it. */
export function auditEntryOf({ name, username, result }: SignedRequest, at: number): AuditEntry {
  const isSigned = result.kind === 'signed'
  const cluster = isSigned ? result.member.cluster : result.cluster
  return {
    at,
    kind: isSigned ? 'administration' : 'denial',
    requestId: name,
    username,
    groups: [],
    method: 'SIGN',
    address: '',
    route: isSigned ? 'certificate_signed' : 'certificate_refused',
    resource: resourceOf(cluster, name),
    status: isSigned ? 200 : 403,
    reason: isSigned
      ? `certificate ${result.serial} for agent ${result.member.agent} until ${new Date(result.notAfterMs).toISOString()}`
      : result.message,
    policy: '',
    policyHash: '',
  }
}

/**
 * What it says of a CA of members that was made or ended, or was not, as was asked. Who annotated the ConfigMap stands in no object: the API server's own
 * log has it.
 */
export const auditEntryOfAuthority = ({ act, id, trouble }: AuthorityAct, at: number): AuditEntry => ({
  ...{ at, kind: 'administration', requestId: '', username: '', groups: [], method: 'RULE', address: '', route: act },
  resource: `configmap ${AUTHORITY_CONFIG_MAP}`,
  status: trouble === undefined ? 200 : 422,
  reason:
    trouble === undefined
      ? doneWords[act](id)
      : `an annotation of the ConfigMap asks for it (${JSON.stringify(id)}): not done, ${trouble}`,
  ...{ policy: '', policyHash: '' },
})

const doneWords: Readonly<Record<AuthorityAct['act'], (id: string) => string>> = {
  authority_made: (id) =>
    `the CA ${id} is made, as none was kept any more at the start of the hub: what a former one signed counts no more`,
  authority_rotated: (id) => `the CA ${id} follows, as an annotation of the ConfigMap asks`,
  authority_ended: (id) =>
    `the CA ${id} is trusted no more, nor what it signed, as an annotation of the ConfigMap asks`,
}

/** What stands in the trail as decided about; of a request that names no cluster, or what could be none, it is the request. */
const resourceOf = (cluster: string | undefined, request: string): string =>
  cluster !== undefined && isMemberCluster(cluster)
    ? `managedcluster ${cluster}`
    : `certificatesigningrequest ${request}`

/** What it says of a request that was decided about without a person: who made it, and by what rule. */
export const auditEntryOfRule = ({ act, request, username, cluster, why }: RuleDecision, at: number): AuditEntry => ({
  at,
  kind: act === 'request_approved' ? 'administration' : 'denial',
  requestId: request,
  username,
  groups: [],
  method: 'RULE',
  address: '',
  route: act,
  resource: resourceOf(cluster, request),
  status: act === 'request_approved' ? 200 : 403,
  reason:
    act === 'approved_wrongly'
      ? `somebody approved it, and its certificate counts until it ends: ${why}`
      : `by rule: ${why}`,
  policy: '',
  policyHash: '',
})
