import { stringify } from 'yaml'
import { type GroupVersionKind, KOLLECT_API_VERSION, type KollectAttribute } from '#kinds'
import type { SinkWord } from './sink-words.ts'

/** All that a starting set of manifests is made of. */
export interface Start {
  readonly kind: GroupVersionKind
  readonly attributes: readonly KollectAttribute[]
  readonly namespace: string
  /** identity in the sink, whichever agent writes; absent: that of the agent, so that one set fits every cluster */
  readonly cluster?: string
  /** of the sink; its Secret and the inventory are called by it, so that two sets do not replace each other's */
  readonly name: string
  readonly sink: SinkWord
  /** where the sink is; of postgres it stands in the Secret */
  readonly endpoint: string
}

/** A file of the set, with the object that is in it. */
export interface StartFile {
  readonly name: string
  readonly object: StartObject
  readonly text: string
}

export interface StartObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly [field: string]: unknown
}

/** Of what nobody said yet. */
export const PLACEHOLDER = 'change-me'

/** Where sinks usually are, to be replaced. */
export const endpoints: Readonly<Record<SinkWord, string>> = {
  postgres: `postgres://inventory:${PLACEHOLDER}@postgres.example.com:5432/inventory`,
  git: 'https://git.example.com/platform/inventory.git',
  s3: 's3://inventory/fleet',
  nats: 'tls://nats.example.com:4222',
  kafka: 'kafka.example.com:9093',
  none: '',
}

/** `ssh://…`, or `git@host:path`. */
const OVER_SSH = /^(ssh:\/\/|[^/:]+@[^/:]+:)/i

const PATH = 'clusters/{cluster}/inventory/{namespace}/{name}{extension}'

/** Kind, reference of the inventory, spec and Secret of a sink. */
interface SinkParts {
  readonly kind: string
  readonly refs: string
  readonly spec: (endpoint: string, secret: SecretName) => Readonly<Record<string, unknown>>
  readonly secret: (endpoint: string) => Readonly<Record<string, string>>
}

interface SecretName {
  readonly name: string
}

const parts: Readonly<Record<Exclude<SinkWord, 'none'>, SinkParts>> = {
  postgres: {
    kind: 'KollectDatabaseSink',
    refs: 'databaseSinkRefs',
    spec: (_, databaseRef) => ({
      postgres: { databaseRef, table: 'inventory' },
      options: { statement_timeout: '30s' },
    }),
    secret: (dsn) => ({ dsn }),
  },
  git: {
    kind: 'KollectSnapshotSink',
    refs: 'snapshotSinkRefs',
    spec: (endpoint, secretRef) => ({ endpoint, secretRef, pathTemplate: PATH, git: { branch: 'main' } }),
    secret: (endpoint) =>
      OVER_SSH.test(endpoint)
        ? { 'ssh-privatekey': `${PLACEHOLDER}\n`, known_hosts: `${PLACEHOLDER}\n` }
        : { token: PLACEHOLDER },
  },
  s3: {
    kind: 'KollectSnapshotSink',
    refs: 'snapshotSinkRefs',
    spec: (endpoint, secretRef) => ({ endpoint, secretRef, pathTemplate: PATH }),
    secret: () => ({ accessKeyID: PLACEHOLDER, secretAccessKey: PLACEHOLDER }),
  },
  nats: {
    kind: 'KollectEventSink',
    refs: 'eventSinkRefs',
    spec: (endpoint, secretRef) => ({
      endpoint,
      secretRef,
      nats: { subject: 'inventory.{cluster}.{namespace}.{name}' },
    }),
    secret: () => ({ token: PLACEHOLDER }),
  },
  kafka: {
    kind: 'KollectEventSink',
    refs: 'eventSinkRefs',
    spec: (endpoint, secretRef) => ({
      secretRef,
      kafka: { brokers: endpoint.split(',').map((one) => one.trim()), topic: 'inventory' },
    }),
    secret: () => ({ username: 'inventory', password: PLACEHOLDER }),
  },
}

const secretSays = (open: readonly string[]) =>
  [
    open.length > 0
      ? `Credentials of the sink: put your own in place of ${PLACEHOLDER} (${open.join(', ')}), and keep the file out of git.`
      : 'Credentials of the sink, as they were given: keep the file out of git.',
    'Once applied, `kubectl apply` leaves keys that are taken out here: for other ones delete the Secret first.',
  ].join('\n# ')

/** The keys of a Secret of a starting set in which something is to be replaced before it is applied. */
export const openKeys = ({ kind, stringData = {} }: StartObject): readonly string[] =>
  kind === 'Secret'
    ? Object.entries(stringData as Readonly<Record<string, string>>) // of our own making
        .filter(([, value]) => value.includes(PLACEHOLDER))
        .map(([key]) => key)
    : []

/** The files of a starting set. */
export function startFiles({
  kind,
  attributes,
  namespace,
  cluster,
  name,
  sink,
  endpoint,
}: Start): readonly StartFile[] {
  const ofKind = kind.kind.toLowerCase()
  const object = (kindName: string, objectName: string, spec: object) => ({
    apiVersion: KOLLECT_API_VERSION,
    kind: kindName,
    metadata: { name: objectName, namespace },
    spec,
  })
  const taken = sink === 'none' ? undefined : parts[sink]
  const secret = { name: `inventory-${name}` }
  return [
    file(
      'profile.yaml',
      `Which values are taken of each ${kind.kind}.`,
      object('KollectProfile', ofKind, { targetGVK: kind, attributes }),
    ),
    file(
      'target.yaml',
      `Which objects: those of the namespace ${namespace}.`,
      object('KollectTarget', ofKind, { profileRef: ofKind, includedNamespaces: [namespace] }),
    ),
    file(
      'inventory.yaml',
      'The rows of every target of the namespace, and the sinks they go to.',
      taken ? object('KollectInventory', `to-${name}`, { [taken.refs]: [name] }) : object('KollectInventory', name, {}),
    ),
    ...(taken
      ? [
          file(
            'sink.yaml',
            `Where the rows go: ${sink}, under the name of ${cluster === undefined ? 'the agent that writes (its CLUSTER_NAME)' : 'this cluster'}.`,
            object(taken.kind, name, {
              type: sink,
              ...(cluster !== undefined && { cluster }),
              ...taken.spec(endpoint, secret),
            }),
          ),
          secretFile({
            apiVersion: 'v1',
            kind: 'Secret',
            metadata: { name: secret.name, namespace },
            stringData: taken.secret(endpoint),
          }),
        ]
      : []),
  ]
}

const secretFile = (secret: StartObject): StartFile => file('secret.yaml', secretSays(openKeys(secret)), secret)

const file = (name: string, says: string, object: StartObject): StartFile => ({
  name,
  object,
  text: `# ${says}\n${stringify(object, { lineWidth: 0 })}`,
})
