import { join } from 'node:path'
import type { AuditEntry, AuditTrail } from '#audit'
import { API_CLIENT_SIGNER, Authority, folderStore } from '#authority'
import { certificateReconcilers, type SignedRequest, STREAM_SIGNER } from '#certificates'
import { Manager } from '#controller'
import type { KubeClient } from '#kube'
import { systemClock } from '#model'
import type { Metrics, Part } from '#runtime'
import type { Sealer } from '#sealing'
import type { AuthorityConfig } from './config-control-plane.ts'
import type { HubLogger } from './run.ts'

const KEY_PLACE = { kind: 'CertificateAuthority', name: 'clusterpulse-members' }

/** The hub's CA in the data folder, once it is open. */
export interface MemberAuthority {
  /** Called once nobody else has the folder, and before the API listens, which knows members by it. */
  open(sealer: Sealer): Promise<Authority>
  get(): Authority
}

export function memberAuthority(options: {
  readonly dataDir: string
  readonly config: AuthorityConfig
  readonly logger: HubLogger
}): MemberAuthority {
  const { dataDir, config, logger } = options
  let opened: Authority | undefined
  return {
    async open(sealer) {
      const store = folderStore(join(dataDir, 'control-plane', 'authority'))
      opened = await Authority.open({
        store,
        sealer: {
          seal: (plain) => sealer.seal(plain, KEY_PLACE),
          open: (sealed) => sealer.open(sealed, KEY_PLACE),
          isCurrent: (sealed) => sealer.isCurrent(sealed),
        },
        ...config,
        logger: logger.child({ part: 'authority' }),
      })
      return opened
    },
    get() {
      if (!opened) throw new Error('the authority is not open yet')
      return opened
    },
  }
}

/** Signs what is approved at the embedded API, where no controller of Kubernetes does. */
export function memberCertificates(options: {
  readonly authority: () => Authority
  readonly hub: () => KubeClient
  readonly namespace: string
  /** opened later than the first request may be signed */
  readonly trail: () => AuditTrail | undefined
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

/** What the audit trail says of a request that was approved: who asked, and what the hub made of it. */
export function auditEntryOf({ name, username, result }: SignedRequest, at: number): AuditEntry {
  const isSigned = result.kind === 'signed'
  return {
    at,
    kind: isSigned ? 'administration' : 'denial',
    requestId: name,
    username,
    groups: [],
    method: 'SIGN',
    address: '',
    route: isSigned ? 'certificate_signed' : 'certificate_refused',
    resource: isSigned ? `managedcluster ${result.member.cluster}` : `certificatesigningrequest ${name}`,
    status: isSigned ? 200 : 403,
    reason: isSigned
      ? `certificate ${result.serial} for agent ${result.member.agent} until ${new Date(result.notAfterMs).toISOString()}`
      : result.message,
    policy: '',
    policyHash: '',
  }
}
