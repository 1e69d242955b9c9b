import type { ManagedFieldsEntry } from '#apiserver'
import { hexOf } from '../random.ts'
import { fieldsOf } from './meta.ts'
import { cpuRequest, memoryRequest } from './quantities.ts'

/**
 * What the pods of one revision of a workload have in common. Shared by reference between objects, and frozen: an API server
 * then knows that it need not encode it again.
 */
export interface PodTemplate {
  readonly app: string
  readonly image: string
  readonly imageId: string
  readonly cpuCores: number
  readonly memoryBytes: number
  /** share of the request that is used on average, 0.1 to 1.2 */
  readonly appetite: number
  readonly containers: readonly Readonly<Record<string, unknown>>[]
  readonly containerNames: readonly string[]
  readonly volumes: readonly unknown[]
  readonly tolerations: readonly unknown[]
  readonly fields: { readonly creator: Record<string, unknown>; readonly kubelet: Record<string, unknown> }
}

/** What the pods of one revision of a workload share by reference. Frozen. */
export interface PodKin {
  readonly template: PodTemplate
  readonly generateName: string
  readonly labels: Readonly<Record<string, string>>
  readonly managedFields: readonly ManagedFieldsEntry[]
  /** undefined where each pod has an owner of its own, as pods of jobs have */
  readonly ownerReferences: readonly unknown[] | undefined
}

export interface TemplateNeeds {
  readonly app: string
  readonly version: string
  readonly cpuCores: number
  readonly memoryBytes: number
  readonly everywhere: boolean
  readonly gpus: number
  /** whether each pod mounts a claim of its own */
  readonly claims?: boolean
}

/** Templates by what they are made of: a thousand clusters that run the same things hold them once. */
export class TemplateCatalogue {
  readonly #templates = new Map<string, PodTemplate>()
  readonly #images = new Map<string, unknown>()

  get(needs: TemplateNeeds): PodTemplate {
    const cpu = cpuRequest(needs.cpuCores)
    const memory = memoryRequest(needs.memoryBytes)
    const key = `${needs.app}|${needs.version}|${cpu.text}|${memory.text}|${needs.everywhere}|${needs.gpus}|${needs.claims}`
    let template = this.#templates.get(key)
    if (!template) {
      template = build(needs, cpu, memory)
      this.#templates.set(key, template)
    }
    return template
  }

  /** An entry of `status.images` of a node that ran this app. */
  image(app: string): unknown {
    let image = this.#images.get(app)
    if (!image) {
      const repository = `registry.example.com/platform/${app}`
      const sizeBytes = 12_000_000 + Number.parseInt(hexOf(app, 7), 16)
      image = { names: [`${repository}@sha256:${hexOf(app, 64)}`, `${repository}:latest`], sizeBytes }
      this.#images.set(app, image)
    }
    return image
  }
}

function build(
  { app, version, everywhere, gpus, claims }: TemplateNeeds,
  cpu: ReturnType<typeof cpuRequest>,
  memory: ReturnType<typeof memoryRequest>,
): PodTemplate {
  const image = `registry.example.com/platform/${app}:${version}`
  const device = gpus > 0 ? { 'nvidia.com/gpu': String(gpus) } : {}
  const container = {
    name: app,
    image,
    imagePullPolicy: 'IfNotPresent',
    args: ['--config=/etc/app/config.yaml', '--listen=:8080'],
    env: environment(app),
    ports: [
      { name: 'http', containerPort: 8080, protocol: 'TCP' },
      { name: 'metrics', containerPort: 9090, protocol: 'TCP' },
    ],
    resources: {
      requests: { cpu: cpu.text, memory: memory.text, ...device },
      limits: { memory: memoryRequest(memory.bytes * 2).text, ...device },
    },
    livenessProbe: probe('/healthz', 15, 20),
    readinessProbe: probe('/readyz', 5, 10),
    volumeMounts: [
      ...(claims ? [{ name: 'data', mountPath: '/var/lib/data' }] : []),
      { name: 'config', mountPath: '/etc/app', readOnly: true },
      { name: 'scratch', mountPath: '/tmp' },
      { name: 'kube-api-access', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
    ],
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
    },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  }
  return {
    app,
    image,
    imageId: ['registry.example.com/platform/', app, '@sha256:', hexOf(image, 64)].join(''),
    cpuCores: cpu.cores,
    memoryBytes: memory.bytes,
    appetite: 0.25 + (Number.parseInt(hexOf(app, 4), 16) / 0xffff) * 0.6,
    containers: Object.freeze([container]),
    containerNames: [app],
    volumes: Object.freeze(volumes(app)),
    tolerations: everywhere ? EVERYTHING : TOLERATIONS,
    fields: { creator: creatorFields(app), kubelet: KUBELET_FIELDS },
  }
}

const environment = (app: string) => [
  { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
  { name: 'NODE_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } },
  { name: 'OTEL_SERVICE_NAME', value: app },
  { name: 'DATABASE_URL', valueFrom: { secretKeyRef: { name: `${app}-database`, key: 'url' } } },
]

const probe = (path: string, initialDelaySeconds: number, periodSeconds: number) => ({
  httpGet: { path, port: 'http', scheme: 'HTTP' },
  initialDelaySeconds,
  periodSeconds,
  timeoutSeconds: 3,
  successThreshold: 1,
  failureThreshold: 3,
})

const volumes = (app: string) => [
  { name: 'config', configMap: { name: `${app}-config`, defaultMode: 420 } },
  { name: 'scratch', emptyDir: {} },
  {
    name: 'kube-api-access',
    projected: {
      defaultMode: 420,
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      ],
    },
  },
]

const EVERYTHING = Object.freeze([{ operator: 'Exists' }])
const TOLERATIONS = Object.freeze(
  ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  })),
)

const creatorFields = (app: string) => {
  const container = `spec>containers>k:{"name":"${app}"}`
  const inContainer = ['.', 'args', 'env', 'image', 'name', 'ports', 'resources', 'volumeMounts']
  return fieldsOf([
    'metadata>generateName',
    'metadata>labels>.',
    'metadata>labels>app.kubernetes.io/name',
    'metadata>labels>pod-template-hash',
    'metadata>ownerReferences>.',
    ...inContainer.map((field) => `${container}>${field}`),
    ...['dnsPolicy', 'restartPolicy', 'volumes'].map((field) => `spec>${field}`),
  ])
}

const KUBELET_FIELDS = fieldsOf([
  ...['ContainersReady', 'Initialized', 'Ready'].flatMap((type) =>
    ['.', 'status', 'type'].map((field) => `status>conditions>k:{"type":"${type}"}>${field}`),
  ),
  ...['containerStatuses', 'hostIP', 'phase', 'podIP', 'podIPs', 'startTime'].map((field) => `status>${field}`),
])
