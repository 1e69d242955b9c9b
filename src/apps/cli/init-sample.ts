import type { GroupVersionKind, KollectAttribute } from '#kinds'
import type { KubeClient, Resource } from '#kube'
import { isRecord, ManifestError } from './manifest-files.ts'

const kind = (group: string, version: string, name: string): GroupVersionKind => ({
  ...(group && { group }),
  version,
  kind: name,
})
const value = (name: string, path: string): KollectAttribute => ({ name, path, optional: true })
const image = value('image', '{.spec.template.spec.containers[0].image}')
const replicas = value('replicas', '{.spec.replicas}')
const ready = value('ready', '{.status.readyReplicas}')

/** Kinds that people ask for by their name alone, and what is worth knowing of them. */
const KNOWN: Readonly<Record<string, readonly [GroupVersionKind, readonly KollectAttribute[]]>> = {
  deployment: [kind('apps', 'v1', 'Deployment'), [image, replicas, ready]],
  statefulset: [kind('apps', 'v1', 'StatefulSet'), [image, replicas, ready]],
  daemonset: [kind('apps', 'v1', 'DaemonSet'), [image, value('ready', '{.status.numberReady}')]],
  cronjob: [
    kind('batch', 'v1', 'CronJob'),
    [value('schedule', '{.spec.schedule}'), value('suspend', '{.spec.suspend}')],
  ],
  pod: [
    kind('', 'v1', 'Pod'),
    [
      value('image', '{.spec.containers[0].image}'),
      value('phase', '{.status.phase}'),
      value('node', '{.spec.nodeName}'),
    ],
  ],
  service: [kind('', 'v1', 'Service'), [value('type', '{.spec.type}'), value('clusterIP', '{.spec.clusterIP}')]],
  ingress: [
    kind('networking.k8s.io', 'v1', 'Ingress'),
    [value('class', '{.spec.ingressClassName}'), value('hosts', '{.spec.rules[*].host}')],
  ],
  persistentvolumeclaim: [
    kind('', 'v1', 'PersistentVolumeClaim'),
    [
      value('storage', '{.spec.resources.requests.storage}'),
      value('class', '{.spec.storageClassName}'),
      value('phase', '{.status.phase}'),
    ],
  ],
}

/** What people may write for a kind. */
export const KIND_WORDS =
  'Deployment, StatefulSet, DaemonSet, CronJob, Pod, Service, Ingress, PersistentVolumeClaim, or Kind.version.group such as Certificate.v1.cert-manager.io, of the core group ConfigMap.v1'

/** @throws ManifestError for a text that names no kind */
export function kindOf(text: string): GroupVersionKind {
  const known = Object.hasOwn(KNOWN, text.toLowerCase()) ? KNOWN[text.toLowerCase()] : undefined
  if (known) return known[0]
  const [, name = '', version = '', group = ''] =
    /^([A-Z][A-Za-z0-9]*)\.(v[a-z0-9]+)(?:\.([a-z0-9.-]+))?$/.exec(text) ?? []
  if (name === '')
    throw new ManifestError(`${JSON.stringify(text)} is no kind that is known by its name: write ${KIND_WORDS}`)
  return kind(group, version, name)
}

const SENSITIVE = /pass|secret|token|key|credential|auth|cert|cookie/i
const PLAIN = /^[A-Za-z][A-Za-z0-9]*$/
/** Values that a first profile proposes at most. */
const MAX_VALUES = 8
const MAX_DEPTH = 4

/** What is worth knowing of a kind: by what is known of it, else by the plain values of one of its objects, else its age. */
export function attributesOf({ kind: name }: GroupVersionKind, sample: unknown): readonly KollectAttribute[] {
  const known = Object.hasOwn(KNOWN, name.toLowerCase()) ? KNOWN[name.toLowerCase()]?.[1] : undefined
  if (known) return known
  const object = isRecord(sample) ? sample : {}
  const paths = ['spec', 'status'].flatMap((part) => leaves(object[part], [part]))
  const named = new Map<string, KollectAttribute>()
  for (const path of paths) {
    const last = path.at(-1) ?? ''
    const title = named.has(last) ? path.join('.') : last
    if (named.size < MAX_VALUES) named.set(title, value(title, `{.${path.join('.')}}`))
  }
  return named.size > 0 ? [...named.values()] : [value('created', '{.metadata.creationTimestamp}')]
}

function leaves(node: unknown, path: readonly string[]): (readonly string[])[] {
  if (typeof node === 'string' || typeof node === 'number' || typeof node === 'boolean') return [path]
  if (!isRecord(node) || path.length === MAX_DEPTH) return []
  return Object.entries(node)
    .filter(([name]) => PLAIN.test(name) && !SENSITIVE.test(name))
    .flatMap(([name, child]) => leaves(child, [...path, name]))
}

/** One object of a kind, as the cluster has it; undefined where there is none. @throws ManifestError where it is not served; KubeError */
export async function sampleOf(
  kube: KubeClient,
  { group = '', version, kind: name }: GroupVersionKind,
  namespace: string,
  signal: AbortSignal,
): Promise<unknown> {
  const served = await kube.find(group, version, name, signal)
  if (!served)
    throw new ManifestError(
      `${kube.endpoint} does not serve ${name} of ${group === '' ? version : `${group}/${version}`}: name another kind, or another cluster with --context`,
    )
  const resource: Resource = { group, version, plural: served.plural, kind: name, namespaced: served.namespaced }
  const options = { pageSize: 1, signal, ...(served.namespaced && { namespace }) }
  for await (const page of kube.list(resource, options)) return page.items[0]
  return undefined
}
