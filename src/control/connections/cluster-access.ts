import { type Destination, destinationOf, endpointAnnotations } from '#credentials'
import type { ClusterConnectionSpec } from '#kinds'
import {
  accessForContext,
  type ClusterAccess,
  type Kubeconfig,
  type KubeObject,
  mergeKubeconfigs,
  type Resource,
  secrets,
} from '#kube'

/** Keys of a Secret that mean something to us; its other data is never held. */
const KEYS = ['token', 'ca.crt', 'tls.crt', 'tls.key', 'kubeconfig', 'context', 'kubeconfigPath'] as const
type SecretKey = (typeof KEYS)[number]

/** A Secret, as far as it holds access data; decoded. */
export interface SecretFacts extends KubeObject {
  readonly access: Readonly<Partial<Record<SecretKey, string>>>
}

export const accessSecrets: Resource<SecretFacts> = {
  group: secrets.group,
  version: secrets.version,
  plural: secrets.plural,
  kind: secrets.kind,
  namespaced: true,
  fromJson: secretFacts,
}

export function secretFacts({ metadata, data, stringData }: KubeObject): SecretFacts {
  const encoded = (data ?? {}) as Readonly<Record<string, unknown>>
  const plain = (stringData ?? {}) as Readonly<Record<string, unknown>> // only servers that keep what was sent return it
  const access: Partial<Record<SecretKey, string>> = {}
  for (const key of KEYS) {
    const value = encoded[key]
    if (typeof value === 'string') access[key] = Buffer.from(value, 'base64').toString('utf8')
    else if (typeof plain[key] === 'string') access[key] = plain[key]
  }
  const { name, namespace, uid, resourceVersion } = metadata
  return {
    metadata: {
      name,
      ...(namespace && { namespace }),
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      ...endpointAnnotations(metadata),
    },
    access,
  }
}

/** Why there is no way in: a code for programs, a sentence with the next step for people. */
export interface AccessFault {
  readonly code: string
  readonly message: string
}

export type AccessDecision =
  /** carried: where the Secret leads by itself, as a kubeconfig does; absent: the connection alone says where */
  { readonly access: ClusterAccess; readonly carried?: Destination } | { readonly fault: AccessFault }

export interface AccessInputs {
  readonly secretName: string
  readonly secret: SecretFacts | undefined
  /** of the file that `kubeconfigPath` names; a fault where it cannot be read; undefined where none is named */
  readonly localKubeconfig: { readonly config: Kubeconfig } | { readonly fault: AccessFault } | undefined
  readonly allowLocalKubeconfig: boolean
}

/** A connection that says where the cluster is and with what credentials. */
export type ReachableSpec = ClusterConnectionSpec & Required<Pick<ClusterConnectionSpec, 'endpoint' | 'credentialsRef'>>

/** Whether the hub itself may ask the cluster; push connections need not say how. */
export function isReachable(spec: ClusterConnectionSpec): spec is ReachableSpec {
  return spec.endpoint !== undefined && spec.credentialsRef !== undefined
}

/** Decides how a cluster is reached, from the connection and its Secret. Says why not, and never a secret. */
export async function decideAccess(spec: ReachableSpec, inputs: AccessInputs): Promise<AccessDecision> {
  const { secret, secretName } = inputs
  if (!secret) return fault('secret_missing', `the Secret ${secretName} does not exist; create it`)
  const { access } = secret
  if (access.kubeconfigPath !== undefined) return fromFile(spec, inputs)
  if (access.kubeconfig !== undefined) return fromText(spec, access.kubeconfig, inputs)
  const credentials = credentialsOf(secret, secretName)
  if ('fault' in credentials) return credentials
  const ca = access['ca.crt']?.trim()
  if (ca && !ca.includes('-----BEGIN CERTIFICATE-----')) {
    return fault(
      'secret_malformed',
      `ca.crt in the Secret ${secretName} is no PEM certificate; put the CA bundle there`,
    )
  }
  const isPlain = spec.endpoint.startsWith('http://')
  return {
    access: {
      server: serverOf(spec.endpoint),
      ...overrides(spec),
      verifyTls: spec.insecureSkipTLSVerify !== true,
      // Without TLS nothing can be verified, so the same explicit choice is asked for.
      ...(isPlain && spec.insecureSkipTLSVerify === true && { allowHttp: true }),
      ...(ca && { ca }),
      credentials: credentials.credentials,
    },
  }
}

/** Without a scheme https is meant. */
export function serverOf(endpoint: string): string {
  const server = /^https?:\/\//.test(endpoint) ? endpoint : `https://${endpoint}`
  return server.replace(/\/+$/, '')
}

const overrides = (spec: ClusterConnectionSpec) => ({
  ...(spec.tlsServerName && { tlsServerName: spec.tlsServerName }),
  ...(spec.proxyURL && { proxyUrl: spec.proxyURL }),
})

function credentialsOf(
  { access }: SecretFacts,
  name: string,
): { readonly credentials: ClusterAccess['credentials'] } | { readonly fault: AccessFault } {
  const token = access.token?.trim()
  if (token) {
    // Whatever is not printable ASCII cannot travel in a header, and would fail later with a less helpful message.
    if (!/^[\x21-\x7e]+$/.test(token)) {
      return fault('secret_malformed', `token in the Secret ${name} holds spaces or line breaks; store the bare token`)
    }
    return { credentials: { kind: 'token', token } }
  }
  const cert = access['tls.crt']
  const key = access['tls.key']
  if (cert && key) return { credentials: { kind: 'certificate', cert, key } }
  if (cert || key) return fault('secret_incomplete', `the Secret ${name} needs both tls.crt and tls.key`)
  return fault(
    'secret_incomplete',
    `the Secret ${name} has no token; add the key "token" (or tls.crt and tls.key, or kubeconfig)`,
  )
}

function fromFile(spec: ClusterConnectionSpec, inputs: AccessInputs): Promise<AccessDecision> | AccessDecision {
  const { secretName, secret, localKubeconfig, allowLocalKubeconfig } = inputs
  if (!allowLocalKubeconfig) {
    const why = `the Secret ${secretName} names a file, which a hub does not read; store its text under "kubeconfig"`
    return fault('local_kubeconfig_refused', why)
  }
  if (!localKubeconfig) return fault('kubeconfig_unreadable', 'the kubeconfig on this machine was not read')
  if ('fault' in localKubeconfig) return localKubeconfig
  return fromKubeconfig(spec, localKubeconfig.config, secret)
}

function fromText(
  spec: ClusterConnectionSpec,
  text: string,
  { secret, secretName }: AccessInputs,
): Promise<AccessDecision> | AccessDecision {
  let config: Kubeconfig
  try {
    config = mergeKubeconfigs([{ path: `the Secret ${secretName}`, text }])
  } catch (error) {
    return malformed(error)
  }
  // Before anything is read: whoever may write a Secret must not make the hub open files or run commands.
  const reach = reachesOut(config)
  if (!reach) return fromKubeconfig(spec, config, secret)
  const why = `the kubeconfig in the Secret ${secretName} uses ${reach}, which a hub does not; embed the data, or use a token`
  return fault('kubeconfig_refused', why)
}

async function fromKubeconfig(
  spec: ClusterConnectionSpec,
  config: Kubeconfig,
  secret: SecretFacts | undefined,
): Promise<AccessDecision> {
  try {
    const access = await accessForContext(config, secret?.access.context?.trim() || undefined)
    const verifyTls = access.verifyTls && spec.insecureSkipTLSVerify !== true
    const isPlain = access.server.startsWith('http://') && spec.insecureSkipTLSVerify === true
    return {
      access: { ...access, ...overrides(spec), verifyTls, ...(isPlain && { allowHttp: true }) },
      carried: destinationOf(access.server, access.proxyUrl),
    }
  } catch (error) {
    return malformed(error)
  }
}

function malformed(error: unknown): AccessDecision {
  const why = error instanceof Error ? error.message : String(error)
  return fault('kubeconfig_malformed', `the kubeconfig cannot be used: ${why}`)
}

const REACHING = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile', 'exec', 'auth-provider']

/** The first entry of a kubeconfig that names a file or a command. */
function reachesOut({ clusters, users }: Kubeconfig): string | undefined {
  const entries = [...clusters.values(), ...users.values()]
  return REACHING.find((field) => entries.some(({ value }) => value[field] !== undefined && value[field] !== null))
}

function fault(code: string, message: string): { readonly fault: AccessFault } {
  return { fault: { code, message } }
}
