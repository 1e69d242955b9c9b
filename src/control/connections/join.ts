import { X509Certificate } from 'node:crypto'
import { stringify } from 'yaml'
import { collectors as builtIn, type Collector, memberCollectors } from '#collect'
import type { ResourceDescriptor } from '#metricsource'
import { type AgentRights, agentRightsText, seconds } from '#model'
import { type AgentSettings, agentObjects, type BufferVolume, plainEnvironment } from './agent-objects.ts'
import { readsOf, usageReads } from './agent-role.ts'
import { hashOf } from './credential-record.ts'
import { AGENT_NAME, AGENT_NAMESPACE, EXECUTOR } from './member-objects.ts'

/** What an agent needs to know that is started by hand, beside a member the hub cannot reach. */
export interface Joining {
  readonly cluster: string
  /** as issued by AgentCredentials, or a join token; written in the clear into what is printed */
  readonly token: string
  /** the token is a join token: the agent becomes a member by a key of its own, with these rights there */
  readonly joins?: { readonly rights: AgentRights }
  /** host:port under which the agent reaches the hub; of one that joins several, with commas between */
  readonly address: string
  readonly tls: boolean
  /** PEM of the CA to trust; absent: the roots of the agent's system */
  readonly caPem?: string
  /** SHA-256 of a certificate that the hub shows in its chain, hex: in a command it says in one word what caPem says in many */
  readonly caFingerprint?: string
  /** name to verify instead of the dialled one */
  readonly serverName?: string
  readonly intervalMs: number
  /** default 5 min */
  readonly operatorScanIntervalMs?: number
}

/** A join as a manifest for the member, besides the command. */
export interface JoiningByManifest extends Joining {
  /** with its tag */
  readonly image: string
  readonly imagePullSecret?: string
  readonly bufferVolume?: BufferVolume
  /** those the agent runs, for its role; default: the built-in ones */
  readonly collectors?: readonly Collector[]
  /** kinds of rows it is to be allowed to read; default: none */
  readonly sources?: readonly ResourceDescriptor[]
}

/** The objects the hub would apply itself, as YAML for `kubectl apply --server-side -f -` on the member. Holds the token. */
export function joinManifest(joining: JoiningByManifest): string {
  const { token, cluster, address, joins, caPem, sources = [] } = joining
  const { collectors = joins ? memberCollectors({}) : builtIn } = joining
  const settings: AgentSettings = {
    ...pick(joining),
    image: joining.image,
    ...(caPem !== undefined && { caPem }),
    ...(joining.imagePullSecret !== undefined && { imagePullSecret: joining.imagePullSecret }),
    ...(joining.bufferVolume && { bufferVolume: joining.bufferVolume }),
  }
  const credential = { token, id: hashOf(token).toString('hex').slice(0, 8), ...(joins && { joins }) }
  const reads = [...readsOf(sources), ...usageReads({})]
  const objects = agentObjects(settings, credential, collectors, reads).map(({ object }) =>
    stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }),
  )
  const head = [
    `# The agent of ${oneLine(cluster)}, which pushes to ${oneLine(address)}${joining.tls ? '' : ' without encryption'}.`,
    ...fingerprints(joining).map((line) => `# ${line}`),
    joins
      ? `# It asks to become a member by a key that it makes and keeps on the member. Rights there: ${agentRightsText(joins.rights)}. The token in it is good for one key.`
      : '# It holds a token that speaks for this cluster: keep it secret, apply it on the member, delete the file.',
    ...(joins ? [...fewerRights(joins.rights), ...leaving].map((line) => `# ${line}`) : []),
  ]
  return `${head.join('\n')}\n${objects.join('---\n')}`
}

/** What applying it does not take away where the agent had more rights before. */
function fewerRights(rights: AgentRights): readonly string[] {
  if (rights.kind === 'full') return []
  const there =
    rights.kind === 'namespaced' ? [`It makes no namespace: ${rights.namespaces.join(', ')} must be there.`] : []
  return [
    ...there,
    'Where it had more rights before, take those away as well:',
    `  kubectl delete clusterrolebinding ${EXECUTOR}         # full`,
    `  kubectl delete rolebinding ${EXECUTOR} -n NAMESPACE   # each namespace that is named no more`,
  ]
}

const OURS = `-l app.kubernetes.io/name=${AGENT_NAME}`

/** How all of it is taken off the member again, without the file. */
const leaving: readonly string[] = [
  'To take the agent off this cluster again, with its rights, its key and what it has not delivered:',
  `  kubectl delete clusterrolebindings,clusterroles ${OURS}`,
  `  kubectl delete rolebindings -A ${OURS}`,
  `  kubectl delete namespace ${AGENT_NAMESPACE}`,
]

/**
 * One line for a shell on a machine that reaches the member: the agent with everything it needs in its environment, the
 * member from the kubeconfig there. Begins with a space, which keeps the token out of the history of most shells.
 */
export function joinCommand(joining: Joining, executable = 'npx clusterpulse'): string {
  const { cluster, token, joins, tls, caPem, caFingerprint } = joining
  if (joins) {
    const rights = joins.rights.kind === 'observe' ? '' : ` --rights ${agentRightsText(joins.rights)}`
    return ` ${executable} join ${token}${rights}`
  }
  const isPinned = tls && caFingerprint !== undefined
  const caFile = tls && caPem !== undefined && !isPinned ? `clusterpulse-${cluster}-ca.pem` : undefined
  const [name, address, ...more] = plainEnvironment(pick(joining), caFile)
  const pin = isPinned ? [['INGESTER_CA_FINGERPRINT', caFingerprint] as const] : []
  const all = [name, address, ['COLLECTOR_TOKEN', token] as const, ...more, ...pin]
  const variables = all.flatMap((variable) => (variable ? [`${variable[0]}=${quoted(variable[1])}`] : []))
  const file =
    caFile === undefined
      ? ''
      : `echo ${Buffer.from(caPem ?? '').toString('base64')} | base64 -d > ${quoted(caFile)} && `
  return ` ${file}${variables.join(' ')} ${executable} agent`
}

/** SHA-256 of each CA certificate, to be compared by people; [] where the roots of the system count. */
export function caFingerprints(caPem: string): readonly string[] {
  const blocks = caPem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block).fingerprint256)
}

function fingerprints({ tls, caPem }: Joining): readonly string[] {
  if (!tls || caPem === undefined) return []
  return caFingerprints(caPem).map((fingerprint) => `It trusts the hub's CA, SHA-256 ${fingerprint}`)
}

export function pick(joining: Joining) {
  const { cluster, address, intervalMs, operatorScanIntervalMs = seconds(300), tls, serverName } = joining
  return { cluster, address, intervalMs, operatorScanIntervalMs, tls, ...(serverName !== undefined && { serverName }) }
}

/** A comment ends with its line. */
const oneLine = (text: string) => text.replace(/[\r\n\u2028\u2029]+/g, ' ')

/** A word of a POSIX shell, whatever is in it. */
export const quoted = (text: string) =>
  /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
