import type { ObjectMeta } from '#kube'
import { type Destination, originOf } from './destination.ts'

/** On a Secret: the only endpoints its credentials go to, separated by commas. Without a scheme https is meant. */
export const ENDPOINT_ANNOTATION = 'clusterpulse.io/endpoint'
/** Beside it: the only proxies they may go through; absent: none. */
export const PROXY_ANNOTATION = 'clusterpulse.io/proxy'

/** A Secret, as far as it matters where its credentials go. */
export interface SecretFor {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
  /** what its annotations allow; undefined: they do not say */
  readonly allowed: Allowed | undefined
}

export interface Allowed {
  readonly endpoints: readonly string[]
  readonly proxies: readonly string[]
}

/** Which Secret a connection means: name, namespace and uid, with the host its annotation binds it to. */
export function secretFor({
  name,
  namespace = '',
  uid = '',
  resourceVersion = '',
  annotations,
}: ObjectMeta): SecretFor {
  return { name, namespace, uid, resourceVersion, allowed: allowedBy(annotations) }
}

/** Of the annotations, what is read here; Secrets are held without the rest. */
export function endpointAnnotations({ annotations }: ObjectMeta): { readonly annotations?: Record<string, string> } {
  const kept = [ENDPOINT_ANNOTATION, PROXY_ANNOTATION].flatMap((name) => {
    const value = annotations?.[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) }
}

/** An annotation that is there and empty allows nothing. */
function allowedBy(annotations: Readonly<Record<string, string>> | undefined): Allowed | undefined {
  const endpoints = annotations?.[ENDPOINT_ANNOTATION]
  if (endpoints === undefined) return undefined
  return { endpoints: originsIn(endpoints), proxies: originsIn(annotations?.[PROXY_ANNOTATION] ?? '') }
}

const originsIn = (text: string): readonly string[] =>
  text
    .split(/[\s,]+/)
    .filter((address) => address !== '')
    .map((address) => originOf(/^https?:\/\//i.test(address) ? address : `https://${address}`))

/** What a person who may write the Secret runs to let its credentials go there. */
export function annotateCommand({ name, namespace }: SecretFor, destinations: readonly Destination[]): string {
  const list = (values: readonly (string | undefined)[]) => [...new Set(values.filter(Boolean))].join(',')
  const proxies = list(destinations.map(({ proxy }) => proxy))
  const annotations = [
    `${ENDPOINT_ANNOTATION}=${list(destinations.map(({ endpoint }) => endpoint))}`,
    ...(proxies ? [`${PROXY_ANNOTATION}=${proxies}`] : []),
  ]
  return `kubectl annotate secret ${name} -n ${namespace} --overwrite ${annotations.map(quoted).join(' ')}`
}

/** Names come from whoever may edit a connection, and the command is meant to be pasted into a shell. */
const quoted = (word: string): string =>
  /^[A-Za-z0-9.:/,=_-]*$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
