import { createHash, X509Certificate } from 'node:crypto'
import { canonicalJson } from '#extract'
import { type KollectKnown, kollectFaults } from '#kinds'
import type { KubeClient, KubeObject } from '#kube'
import type { SinkFamily, SinkObject } from '#sinks'
import type { AnySinkSpec, Blocked, FoundSink } from '../bindings/plan.ts'
import { readSecret, type SecretValues } from './secret-values.ts'

/** A sink as the API server gives it. */
export type SinkResource = KubeObject & { readonly spec: AnySinkSpec }

export const SINK_KINDS: Readonly<Record<SinkFamily, string>> = {
  database: 'KollectDatabaseSink',
  snapshot: 'KollectSnapshotSink',
  event: 'KollectEventSink',
}

/** What is known besides the object. */
export interface ResolveContext {
  readonly kube: KubeClient
  readonly known: KollectKnown
  /** identity of this agent; '' where it has none */
  readonly cluster: string
}

/** What came of a sink's references. */
export interface Resolved {
  readonly found: FoundSink
  /** by their place, to be told again while the API is away */
  readonly secrets: ReadonlyMap<string, SecretValues>
}

interface SecretRef {
  readonly name: string
  readonly namespace?: string
}

/** Follows the references of a sink: its Secrets, its CAs, its identity. */
export async function resolveSink(
  family: SinkFamily,
  object: SinkResource,
  { kube, known, cluster: own }: ResolveContext,
  kept: ReadonlyMap<string, SecretValues>,
  signal: AbortSignal,
): Promise<Resolved> {
  const { spec } = object
  const { name, namespace = '', uid = '' } = object.metadata
  const blocked = (problem: Blocked): Resolved => ({
    found: { kind: 'blocked', spec, blocked: problem },
    secrets: kept,
  })
  const faults = kollectFaults(SINK_KINDS[family], object, known)
  if (faults.length > 0)
    return blocked({
      reason: 'InvalidSink',
      message: faults.map(({ path, message }) => `${path} ${message}`).join('; '),
      errorClass: 'terminal',
    })
  const cluster = spec.cluster || own
  if (cluster === '')
    return blocked({
      reason: 'NoClusterIdentity',
      message: 'it is not known which cluster this is: set spec.cluster, or CLUSTER_NAME of the agent',
      errorClass: 'terminal',
    })
  const secrets = new Map<string, SecretValues>()
  for (const [place, ref] of refsOf(spec)) {
    const of = ref.namespace ?? namespace
    if (of !== namespace && known.semantics !== 'original')
      return blocked({
        reason: 'SecretNamespaceDenied',
        message: `the Secret ${of}/${ref.name} is of another namespace: copy it to ${namespace}, or run the agent with KOLLECT_SEMANTICS=original`,
        errorClass: 'terminal',
      })
    const answer = await readSecret(kube, { namespace: of, name: ref.name }, kept.get(place), signal)
    if (answer.kind === 'refused') return blocked(answer.blocked)
    secrets.set(place, answer.secret)
  }
  const caBundle = caOf(spec, secrets.get('ca'))
  if (secrets.has('ca') && caBundle === undefined)
    return blocked({
      reason: 'SecretIncomplete',
      message:
        'the Secret of spec.tls.caSecretRef has no certificate that can be read as tls.crt, ca.crt or ca.pem: put the PEM of the CAs there',
      errorClass: 'terminal',
    })
  const declaration = {
    namespace,
    name,
    cluster,
    credentials: secrets.get('credentials')?.values ?? {},
    ...(caBundle !== undefined && { caBundle }),
    spec,
  }
  const sinkObject = { family, uid, declaration } as SinkObject // the family says which spec it is
  const identity = identityOf(uid, spec, cluster, secrets)
  return { found: { kind: 'ready', spec, sink: { object: sinkObject, identity } }, secrets }
}

/** Whether anything of the sink has to be asked for again and again. */
export const hasSecrets = (spec: AnySinkSpec): boolean => refsOf(spec).length > 0

function refsOf(spec: AnySinkSpec): readonly (readonly ['credentials' | 'ca', SecretRef])[] {
  const credentials = credentialsOf(spec)
  const ca = spec.tls?.caSecretRef
  return [...(credentials ? [['credentials', credentials] as const] : []), ...(ca ? [['ca', ca] as const] : [])]
}

function credentialsOf(spec: AnySinkSpec): SecretRef | undefined {
  if ('postgres' in spec && spec.postgres) return spec.postgres.databaseRef
  if ('git' in spec && spec.git?.auth?.secretRef) return spec.git.auth.secretRef
  if ('nats' in spec && spec.nats?.secretRef) return spec.nats.secretRef
  if ('kafka' in spec && spec.kafka?.secretRef) return spec.kafka.secretRef
  return spec.secretRef
}

function caOf({ tls }: AnySinkSpec, secret: SecretValues | undefined): string | undefined {
  if (tls?.caBundle !== undefined) return Buffer.from(tls.caBundle, 'base64').toString('utf8')
  const found = ['tls.crt', 'ca.crt', 'ca.pem'].map((key) => secret?.values[key]).find((value) => value?.length)
  return found && certificatesIn(Buffer.from(found).toString('utf8'))
}

/** Those of a text that can be read; what else stands there stops programs that read all of it. */
function certificatesIn(text: string): string | undefined {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const readable = blocks.filter((pem) => {
    try {
      return new X509Certificate(pem) instanceof X509Certificate
    } catch {
      return false
    }
  })
  return readable.length === 0 ? undefined : `${readable.join('\n')}\n`
}

/** Fields that say when and whether, not where: another value is no other sink. */
const PACE = ['exportMinInterval', 'snapshotWindow', 'connectionTest', 'deletionPolicy'] as const

/** By versions of Secrets, not by their values: it stands in statuses. */
function identityOf(
  uid: string,
  spec: AnySinkSpec,
  cluster: string,
  secrets: ReadonlyMap<string, SecretValues>,
): string {
  const where: Record<string, unknown> = { ...spec }
  for (const field of PACE) delete where[field]
  const versions = [...secrets.values()].map(({ version }) => version)
  return createHash('sha256')
    .update(canonicalJson([uid, where, cluster, versions]))
    .digest('hex')
    .slice(0, 32)
}
