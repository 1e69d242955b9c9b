import { failureOf } from '#collect'
import { type CredentialLedger, destinationOf, type Held, type Question, secretFor } from '#credentials'
import { type ClusterConnection, clusterConnection } from '#kinds'
import type { ClusterAccess, KubeObject, ObjectKey } from '#kube'
import { FleetError } from '#model'
import { decideAccess, isReachable, type SecretFacts } from './cluster-access.ts'
import type { LocalKubeconfigs } from './local-kubeconfig.ts'
import { type Defaults, type Settings, settingsOf } from './settings.ts'
import type { RoundEnd } from './status.ts'

export type Failed = Extract<RoundEnd, { kind: 'failed' }>

/** How a cluster is asked by the hub itself, with whose credentials; or why it cannot be. */
export type Endpoint =
  | { readonly access: ClusterAccess; readonly credentials: Question }
  /** held: there are credentials, and they are not for this endpoint */
  | { readonly end: Failed; readonly held?: Held }

/** What every reason begins with. */
export const CLIENT = 'failed to get cluster client: '

/** Names a cluster's client in the pool. Never the display name: two clusters may share one. */
export const poolKey = ({ name, namespace }: ObjectKey): string => `${namespace ?? ''}/${name}`

export interface Reading {
  readonly connection: ClusterConnection
  readonly settings: Settings
  readonly fault?: Extract<Endpoint, { end: unknown }>
}

/** The connection as its kind describes it; where it does not fit, enough of it that people see which one and why. */
export function readConnection(object: KubeObject, defaults: Defaults, receivesAgents: boolean): Reading {
  try {
    const connection = clusterConnection.parse(object)
    return { connection, settings: settingsOf(connection, defaults, receivesAgents) }
  } catch (error) {
    const { code, message } = FleetError.from(error)
    const connection = { ...object, apiVersion: clusterConnection.apiVersion, kind: clusterConnection.kind, spec: {} }
    const end = { kind: 'failed' as const, blame: 'spec' as const, code, message: `${CLIENT}${message}` }
    return { connection, settings: settingsOf(connection, defaults), fault: { end } }
  }
}

export interface EndpointInputs {
  /** where Secrets are that name no namespace, and whose connections do not either */
  readonly namespace: string
  readonly secret: (key: ObjectKey) => Promise<SecretFacts | undefined>
  /** absent: Secrets may not name files of this machine */
  readonly localKubeconfigs?: LocalKubeconfigs
  /** where credentials were accepted */
  readonly ledger: Pick<CredentialLedger, 'hold'>
}

/** Reads the Secret of a connection, and what it says. */
export async function resolveEndpoint(
  { metadata, spec }: ClusterConnection,
  { namespace, secret: read, localKubeconfigs, ledger }: EndpointInputs,
  signal: AbortSignal,
): Promise<Endpoint> {
  if (!isReachable(spec)) return NO_ENDPOINT
  const { name } = spec.credentialsRef
  const secretKey = { name, namespace: spec.credentialsRef.namespace || metadata.namespace || namespace }
  const secretName = `${secretKey.namespace}/${name}`
  let secret: SecretFacts | undefined
  try {
    secret = await read(secretKey)
  } catch (error) {
    signal.throwIfAborted()
    const { code, message } = failureOf(`${CLIENT}the Secret ${secretName} cannot be read: `, error)
    return { end: { kind: 'failed', blame: 'credentials', code, message } }
  }
  const path = secret?.access.kubeconfigPath
  const decision = await decideAccess(spec, {
    secretName,
    secret,
    localKubeconfig: path !== undefined && localKubeconfigs ? await localKubeconfigs.read(path.trim()) : undefined,
    allowLocalKubeconfig: localKubeconfigs !== undefined,
  })
  if ('fault' in decision) return noEndpoint(decision.fault.code, decision.fault.message)
  const { access, carried } = decision
  const credentials: Question = {
    connection: metadata.name,
    secret: secretFor({ namespace: secretKey.namespace, ...secret?.metadata, name }),
    destination: destinationOf(access.server, access.proxyUrl),
    ...(carried && { carried }),
  }
  const held = ledger.hold(credentials)
  return held ? { ...noEndpoint('credentials_held', held.message), held } : { access, credentials }
}

const noEndpoint = (code: string, message: string) => ({
  end: { kind: 'failed', blame: 'credentials', code, message: `${CLIENT}${message}` } as const satisfies Failed,
})

const NO_ENDPOINT = {
  end: {
    kind: 'failed',
    blame: 'spec',
    code: 'no_access',
    message: `${CLIENT}the connection names no endpoint and credentials; only an agent can read this cluster`,
  },
} as const satisfies Endpoint
