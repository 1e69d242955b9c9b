import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

const isRequired = process.env.CI_REQUIRE_ALL === '1'
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0
const missing = hasKubectl || isRequired ? undefined : 'no kubectl'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}
interface Container {
  readonly name: string
  readonly image: string
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[]
  readonly securityContext?: { readonly readOnlyRootFilesystem?: boolean; readonly allowPrivilegeEscalation?: boolean }
  readonly resources?: { readonly limits?: object }
  readonly readinessProbe?: object
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
}
interface Manifest {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly data?: Readonly<Record<string, string>>
  readonly rules?: readonly Rule[]
  readonly spec?: {
    readonly template?: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> }
      readonly spec: { readonly securityContext?: object; readonly containers: readonly Container[] }
    }
    readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> }
    readonly selector?: { readonly matchLabels: Readonly<Record<string, string>> }
    readonly groups?: readonly object[]
    readonly endpoints?: readonly { readonly port: string }[]
    readonly ports?: readonly { readonly name: string; readonly port: number; readonly targetPort: string }[]
    readonly ingress?: readonly { readonly ports?: readonly object[] }[]
  }
}

/** Where a Route, an Ingress or a route of a Gateway leads. */
interface Leading {
  readonly to?: { readonly name: string }
  readonly port?: { readonly targetPort: string }
  readonly rules?: readonly {
    readonly http?: {
      readonly paths: readonly {
        readonly backend: { readonly service: { readonly name: string; readonly port: { readonly name: string } } }
      }[]
    }
    readonly backendRefs?: readonly { readonly name: string; readonly port: number }[]
  }[]
}
/** @returns the Service, and the name or number of its port */
function backendOf(kind: string, spec: object | undefined): { name: string; port?: string | number } | undefined {
  const { to, port, rules } = (spec ?? {}) as Leading
  if (kind === 'Route' && to) return { name: to.name, ...(port && { port: port.targetPort }) }
  const service = kind === 'Ingress' ? rules?.[0]?.http?.paths[0]?.backend.service : undefined
  if (service) return { name: service.name, port: service.port.name }
  return /^(HTTP|TLS)Route$/.test(kind) ? rules?.[0]?.backendRefs?.[0] : undefined
}

const DEPLOY = 'deploy'
const components = readdirSync(join(DEPLOY, 'components')).sort()

const built = (folder: string): readonly Manifest[] => {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  expect(status, `${folder}: ${stderr}`).toBe(0)
  return stdout.split(/^---$/m).map(read)
}
const known = new Map<string, Manifest>()
/** Most objects, and all that are long, are the same in every combination: they are parsed once. */
function read(text: string): Manifest {
  const manifest = known.get(text) ?? (parse(text) as Manifest)
  known.set(text, manifest)
  return manifest
}
/** The base with these components, as an operator's own kustomization names them. */
const combined = (names: readonly string[]): readonly Manifest[] => {
  const folder = mkdtempSync(join(tmpdir(), 'deploy-'))
  try {
    // kustomize takes relative paths only.
    const here = relative(realpathSync(folder), resolve(DEPLOY))
    const kustomization = {
      resources: [join(here, 'base')],
      components: names.map((name) => join(here, 'components', name)),
    }
    writeFileSync(join(folder, 'kustomization.yaml'), stringify(kustomization))
    return built(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** One of each line, and by turns none or all of what stands for itself. What needs push must build without it, too. */
const ways = [
  [],
  ['push'],
  ['push', 'cert-manager'],
  ['push', 'cert-manager', 'load-balancer'],
  ['push', 'cert-manager', 'gateway-agents'],
  ['push', 'openshift'],
]
const pages = [
  [],
  ['oidc', 'ingress'],
  ['trusted-proxy', 'gateway'],
  ['oidc', 'trusted-proxy'],
  ['openshift-page', 'openshift-groups'],
]
const besides = [[], ['history', 'token-review', 'monitoring', 'members', 'audit']]
const combinations: readonly (readonly string[])[] = [
  ...ways.flatMap((way, i) =>
    pages.flatMap((page, j) =>
      (page.length === 0 ? besides : [besides[(i + j) % 2] ?? []]).map((more) => [...way, ...page, ...more]),
    ),
  ),
  ...components.filter((name) => name !== 'fixed-user').map((name) => [name]),
]
const withUser = (names: readonly string[]) =>
  names.some((name) => name.startsWith('openshift')) ? names : [...names, 'fixed-user']

describe.skipIf(missing !== undefined)(`the manifests${missing === undefined ? '' : ` (not run: ${missing})`}`, () => {
  const all = new Map<string, readonly Manifest[]>()
  beforeAll(() => {
    for (const names of combinations.map(withUser)) all.set(names.join(' '), combined(names))
    for (const folder of ['base', 'overlays/kubernetes', 'overlays/openshift'])
      all.set(folder, built(join(DEPLOY, folder)))
  })

  const of = (kind: string, manifests: readonly Manifest[]) => manifests.filter((one) => one.kind === kind)
  const podsOf = (manifests: readonly Manifest[]) =>
    of('Deployment', manifests).map(({ metadata, spec }) => {
      if (!spec?.template) throw new Error(`${metadata.name} has no template`)
      return { ...spec.template, name: metadata.name }
    })

  it('combine: every component is in some combination, and every container runs with little', () => {
    expect([...new Set([...all.keys()].flatMap((names) => names.split(' ')))]).toEqual(
      expect.arrayContaining(components),
    )
    for (const [title, manifests] of all) {
      expect(
        manifests.map(({ kind }) => kind),
        title,
      ).toContain('CustomResourceDefinition')
      for (const { spec, name } of podsOf(manifests)) {
        expect(spec.securityContext, name).toMatchObject({ runAsNonRoot: true })
        for (const container of spec.containers) {
          expect(container.securityContext, `${title}: ${container.name}`).toMatchObject({
            readOnlyRootFilesystem: true,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
          })
          expect(container.resources?.limits, `${title}: ${container.name}`).toBeDefined()
          expect(container.readinessProbe, `${title}: ${container.name}`).toBeDefined()
        }
      }
    }
  })

  it('fix no user but where the component that does was chosen', () => {
    for (const [title, manifests] of all) {
      const fixes = JSON.stringify(podsOf(manifests)).match(/runAsUser|runAsGroup|fsGroup/g) ?? []
      if (/fixed-user|overlays\/kubernetes/.test(title)) expect(fixes.length, title).toBe(podsOf(manifests).length * 3)
      else expect(fixes, title).toEqual([])
    }
  })

  it('guard every pod by a network policy, and drain it one at a time', () => {
    for (const [title, manifests] of all) {
      for (const { metadata } of podsOf(manifests)) {
        const name = metadata.labels['app.kubernetes.io/name']
        const chosen = (kind: string, pick: (one: Manifest) => Readonly<Record<string, string>> | undefined) =>
          of(kind, manifests).filter((one) => pick(one)?.['app.kubernetes.io/name'] === name)
        expect(
          chosen('NetworkPolicy', ({ spec }) => spec?.podSelector?.matchLabels).length,
          `${title}: ${name}`,
        ).toBeGreaterThan(0)
        expect(
          chosen('PodDisruptionBudget', ({ spec }) => spec?.selector?.matchLabels).length,
          `${title}: ${name}`,
        ).toBe(1)
      }
    }
  })

  it('name one image of ours, with the version of the package, and agents run the same', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    for (const [title, manifests] of all) {
      const ours = podsOf(manifests).flatMap(({ spec }) =>
        spec.containers.filter(({ image }) => /clusterpulse/.test(image)),
      )
      expect(
        ours.map(({ image }) => image),
        title,
      ).toEqual(ours.map(() => `clusterpulse/clusterpulse:${version}`))
      expect(ours.length).toBe(2)
      const manager = ours.find(({ name }) => name === 'manager')
      expect(manager?.env?.find(({ name }) => name === 'AGENT_IMAGE')?.value, title).toBe(manager?.image)
    }
    for (const [title, manifests] of all)
      for (const { image } of podsOf(manifests).flatMap(({ spec }) => spec.containers))
        expect(image, title).toMatch(/:v?\d+\.\d+(\.\d+)?$|@sha256:/)
  })

  it.each(['kubernetes', 'openshift'])('run the digests that an operator pins among images, agents too: %s', (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'deploy-'))
    try {
      const here = relative(realpathSync(folder), resolve(DEPLOY))
      const kustomization = readFileSync(join(DEPLOY, 'overlays', name, 'kustomization.yaml'), 'utf8')
      const digest = `sha256:${'a'.repeat(64)}`
      const text = kustomization.replaceAll(/newTag: .*/g, `digest: ${digest}`).replaceAll('../../', `${here}/`)
      writeFileSync(join(folder, 'kustomization.yaml'), text)
      const containers = podsOf(built(folder)).flatMap(({ spec }) => spec.containers)
      for (const pinned of ['manager', 'api', 'redis']) {
        const { image = '', env } = containers.find((one) => one.name === pinned) ?? {}
        expect(image, pinned).toMatch(new RegExp(`^[^:@]+@${digest}$`))
        if (pinned === 'manager') expect(env?.find((one) => one.name === 'AGENT_IMAGE')?.value).toBe(image)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('let Redis run with a password of a Secret only, which both processes show', () => {
    for (const [title, manifests] of all) {
      const containers = podsOf(manifests).flatMap(({ spec }) => spec.containers)
      for (const name of ['redis', 'manager', 'api']) {
        const password = containers.find((one) => one.name === name)?.env?.find((one) => one.name === 'REDIS_PASSWORD')
        expect(password?.valueFrom, `${title}: ${name}`).toEqual({
          secretKeyRef: { name: 'clusterpulse-redis', key: 'password' },
        })
      }
      // None holds anything: what is to be secret is made on the hub.
      expect(of('Secret', manifests).flatMap(Object.keys), title).not.toContain('data')
      expect(of('Secret', manifests).flatMap(Object.keys), title).not.toContain('stringData')
    }
    // An empty one is no password: the container ends, and says why.
    const redis = podsOf(all.get('base') ?? []).flatMap(({ spec }) =>
      spec.containers.filter(({ name }) => name === 'redis'),
    )
    const [{ command = [], args = [] } = {}] = redis as readonly { command?: string[]; args?: string[] }[]
    const open = spawnSync(command[0] ?? '', [...command.slice(1), ...args], {
      env: { REDIS_PASSWORD: '' },
      encoding: 'utf8',
    })
    expect([open.status, open.stderr]).toEqual([1, expect.stringMatching(/Secret clusterpulse-redis is empty/)])
  })

  it("keep what an operator's own kustomization sets, whatever components there are", () => {
    const settings = (folder: string) =>
      of('ConfigMap', all.get(folder) ?? []).find(({ metadata }) => metadata.name.startsWith('clusterpulse-settings'))
        ?.data
    expect(settings('overlays/kubernetes')).toMatchObject({
      INGESTER_ADVERTISE: 'agents.pulse.example.com:9443',
      PUBLIC_URL: 'https://pulse.example.com',
      API_HOST: '0.0.0.0',
      INGESTER_ENABLED: 'true',
      VM_ENABLED: 'true',
      COLLECTOR_CA_FILE: '/etc/ingester-tls/ca.crt',
    })
    expect(settings('overlays/openshift')).toMatchObject({
      INGESTER_ADVERTISE: 'clusterpulse-ingester-clusterpulse.apps.example.com:443',
      API_HOST: '127.0.0.1',
      TRUSTED_PROXIES: '127.0.0.1',
      OPENSHIFT_GROUPS: 'true',
    })
    expect(settings('base')).toEqual({ API_HOST: '127.0.0.1', REDIS_HOST: 'redis', INGESTER_ENABLED: 'false' })
  })

  it('let Prometheus in to both processes, whatever stands before the page', () => {
    const labelled = (labels: Readonly<Record<string, string>> | undefined, wanted: Readonly<Record<string, string>>) =>
      Object.entries(wanted).every(([key, value]) => labels?.[key] === value)
    const monitored = [...all].filter(([title]) => /monitoring|overlays/.test(title))
    expect(monitored.length).toBeGreaterThan(20)
    for (const [title, manifests] of monitored) {
      const scraped = of('ServiceMonitor', manifests).flatMap(({ spec }) => {
        const services = of('Service', manifests).filter(({ metadata }) =>
          labelled(metadata.labels, spec?.selector?.matchLabels ?? {}),
        )
        expect(services.length, title).toBe(1)
        const ports = services[0]?.spec?.ports ?? []
        const port = ports.find(({ name }) => name === spec?.endpoints?.[0]?.port)
        const selector = services[0]?.spec?.selector as unknown as Readonly<Record<string, string>>
        return podsOf(manifests)
          .filter(({ metadata }) => labelled(metadata.labels, selector))
          .map((pod) => {
            const container = pod.spec.containers.find((one) =>
              one.ports?.some(({ name }) => name === port?.targetPort),
            )
            const number = container?.ports?.find(({ name }) => name === port?.targetPort)?.containerPort
            const lets = of('NetworkPolicy', manifests)
              .filter((one) => labelled(pod.metadata.labels, one.spec?.podSelector?.matchLabels ?? { none: '' }))
              .flatMap((one) => one.spec?.ingress?.flatMap((rule) => rule.ports ?? []) ?? [])
            expect(lets, `${title}: ${pod.name}`).toContainEqual({ port: number })
            const address = container?.env?.find(({ name }) => name === 'API_METRICS_BIND_ADDRESS')?.value
            if (container?.name === 'api') expect(address, title).toBe(`:${number}`)
            return container?.name
          })
      })
      expect(scraped.sort(), title).toEqual(['api', 'manager'])
    }
  })

  it('lead people and agents to a port that a container serves, and end no TLS of agents on the way', () => {
    const led = new Set<string>()
    for (const [title, manifests] of all)
      for (const { kind, metadata, spec } of manifests) {
        const { name, port } = backendOf(kind, spec) ?? {}
        // What is for agents builds without `push`, too, and leads nowhere then.
        if (name === undefined || (name === 'clusterpulse-ingester' && !/push|overlays/.test(title))) continue
        led.add(`${kind} ${metadata.name} ${name}`)
        const service = of('Service', manifests).find((one) => one.metadata.name === name)?.spec
        const target = service?.ports?.find((one) => one.name === port || one.port === port)?.targetPort
        const app = (service?.selector as { readonly 'app.kubernetes.io/name'?: string } | undefined)?.[
          'app.kubernetes.io/name'
        ]
        const pod = podsOf(manifests).find((one) => one.metadata.labels['app.kubernetes.io/name'] === app)
        const named = pod?.spec.containers.flatMap((container) => container.ports?.map((one) => one.name) ?? [])
        expect(named, `${title}: ${kind} ${metadata.name}`).toContain(target)
      }
    expect([...led].sort()).toEqual([
      'HTTPRoute clusterpulse clusterpulse-api',
      'Ingress clusterpulse clusterpulse-api',
      'Route clusterpulse clusterpulse-api',
      'Route clusterpulse-ingester clusterpulse-ingester',
      'TLSRoute clusterpulse-ingester clusterpulse-ingester',
    ])
    const json = (title: string, kind: string, name: string) =>
      JSON.stringify(of(kind, all.get(title) ?? []).filter(({ metadata }) => metadata.name === name))
    const openshift = 'push openshift'
    expect(json(openshift, 'Route', 'clusterpulse-ingester')).toContain('"termination":"passthrough"')
    expect(json(openshift, 'Service', 'clusterpulse-ingester')).toContain('serving-cert-secret-name":"ingester-tls"')
    const outside = 'push cert-manager gateway-agents fixed-user'
    expect(json(outside, 'Gateway', 'clusterpulse-agents')).toContain('"mode":"Passthrough"')
    const balanced = 'push cert-manager load-balancer fixed-user'
    expect(json(balanced, 'Service', 'clusterpulse-ingester')).toContain('"type":"LoadBalancer"')
    expect(json(balanced, 'Certificate', 'ingester-tls')).toMatch(/clusterpulse-ingester\.clusterpulse\.svc/)
  })

  it('receive agents only where that was chosen, on a volume that outlives the pod', () => {
    const manager = (title: string) =>
      JSON.stringify(of('Deployment', all.get(title) ?? []).find(({ metadata }) => metadata.name.includes('manager')))
    expect(manager('base')).not.toContain('persistentVolumeClaim')
    expect(manager('push fixed-user')).toMatch(/"persistentVolumeClaim":\{"claimName":"clusterpulse-manager"\}/)
  })

  it('grant no more than is read and written', () => {
    for (const [title, manifests] of all) {
      const rules = manifests.flatMap((manifest) => manifest.rules ?? [])
      expect(rules.length).toBeGreaterThan(0)
      for (const { apiGroups, resources, resourceNames, verbs } of rules) {
        expect([...apiGroups, ...resources, ...verbs], title).not.toContain('*')
        if (isDeepStrictEqual(resourceNames, ['clusterpulse-webhooks'])) continue // its own, by name
        // For people who let machines ask to join, and bound to nobody: it makes Secrets and reads none.
        if (resources.includes('secrets') && isDeepStrictEqual(verbs, ['create'])) continue
        if (resources.includes('secrets') && !title.includes('push') && !title.includes('overlays'))
          expect(verbs, title).toEqual(['get', 'list', 'watch'])
      }
    }
    const manifest = readFileSync('deploy/member/reader.yaml', 'utf8')
    const reader = parseAllDocuments(manifest).map((document) => document.toJS() as Manifest)
    const member = reader.find(({ kind }) => kind === 'ClusterRole')
    expect(member?.rules?.flatMap(({ verbs }) => verbs).every((verb) => ['get', 'list', 'watch'].includes(verb))).toBe(
      true,
    )
    expect(member?.rules?.flatMap(({ resources }) => resources)).not.toContain('secrets')
  })

  const noServer = isRequired ? undefined : (noRealApiServer() ?? noCrds())
  describe.skipIf(noServer !== undefined)(
    `on a real kube-apiserver${noServer === undefined ? '' : ` (not run: ${noServer})`}`,
    () => {
      let real: RealApiServer
      let folder: string
      const kubectl = (args: readonly string[], input?: string) => {
        const run = spawnSync('kubectl', ['--kubeconfig', join(folder, 'admin.yaml'), ...args], {
          encoding: 'utf8',
          input,
          maxBuffer: 2 ** 26,
        })
        return { status: run.status, said: `${run.stdout}${run.stderr}` }
      }
      beforeAll(async () => {
        const server = await startRealApiServer()
        if (!server) throw new Error('no real kube-apiserver')
        real = server
        folder = mkdtempSync(join(tmpdir(), 'deploy-'))
        writeFileSync(join(folder, 'admin.yaml'), real.kubeconfig)
        const made = kubectl([
          'apply',
          '--server-side',
          '-f',
          crdFolder(),
          '-f',
          'deploy/crds',
          '-f',
          'deploy/base/namespace.yaml',
        ])
        expect(made.said).toMatch(/namespace\/clusterpulse serverside-applied/)
        const kinds = [
          'routes.route.openshift.io',
          'httproutes.gateway.networking.k8s.io',
          'tlsroutes.gateway.networking.k8s.io',
          'prometheusrules.monitoring.coreos.com',
        ]
        const ready = kubectl([
          'wait',
          '--for=condition=Established',
          '--timeout=60s',
          ...kinds.map((kind) => `crd/${kind}`),
        ])
        expect(ready.status, ready.said).toBe(0)
      })
      afterAll(async () => {
        await real?.stop()
        if (folder) rmSync(folder, { recursive: true, force: true })
      })

      it('takes every object of every combination, with no word of warning', () => {
        const objects = new Map<string, Manifest>()
        for (const manifests of all.values())
          for (const manifest of manifests)
            if (manifest.kind !== 'CustomResourceDefinition') objects.set(JSON.stringify(manifest), manifest)
        expect(objects.size).toBeGreaterThan(60)
        // Objects of one name differ between combinations: each round takes one of each.
        let rest = [...objects.values()]
        while (rest.length > 0) {
          const round = new Map(rest.map((one) => [`${one.kind}/${one.metadata.name}`, one]))
          rest = rest.filter((one) => round.get(`${one.kind}/${one.metadata.name}`) !== one)
          const text = [...round.values()].map((one) => JSON.stringify(one)).join('\n---\n')
          const taken = kubectl(['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'], text)
          expect(taken.status, taken.said).toBe(0)
          expect(taken.said).not.toMatch(/warning/i)
        }
        // What a server fills in where a field is absent stands in the way of nothing that is added later.
        const deployments = (manifests: readonly Manifest[]) =>
          of('Deployment', manifests)
            .map((one) => JSON.stringify(one))
            .join('\n---\n')
        const first = kubectl(['apply', '--server-side', '-f', '-'], deployments(all.get('base') ?? []))
        expect(first.status, first.said).toBe(0)
        for (const names of [['audit'], ['history', 'audit']]) {
          const added = kubectl(['apply', '--server-side', '--dry-run=server', '-f', '-'], deployments(combined(names)))
          expect(added.status, added.said).toBe(0)
        }
        // That they are looked at: a wrong one of each is refused.
        for (const [apiVersion, kind, spec] of [
          ['route.openshift.io/v1', 'Route', { to: { kind: 'Servicee', name: 'x' } }],
          ['gateway.networking.k8s.io/v1', 'TLSRoute', { hostnames: ['x.example.com'] }],
          ['gateway.networking.k8s.io/v1', 'HTTPRoute', { hostnames: ['no host'] }],
          ['cert-manager.io/v1', 'Certificate', { secretName: 'x' }],
          ['monitoring.coreos.com/v1', 'ServiceMonitor', { endpoints: [{ port: 'metrics' }] }],
        ] as const) {
          const wrong = stringify({ apiVersion, kind, metadata: { name: 'x', namespace: 'clusterpulse' }, spec })
          const refused = kubectl(['apply', '--server-side', '--dry-run=server', '-f', '-'], wrong)
          expect([kind, refused.status, refused.said]).toEqual([kind, 1, expect.stringMatching(/invalid|Required/)])
        }
      })
    },
  )

  const promtool = promtoolPath()
  it.skipIf(promtool === undefined && !isRequired)('hold rules that promtool takes', () => {
    const rule = of('PrometheusRule', combined(['monitoring']))[0]
    const file = join(mkdtempSync(join(tmpdir(), 'rules-')), 'rules.yaml')
    writeFileSync(file, stringify({ groups: rule?.spec?.groups }))
    const check = spawnSync(promtool ?? 'promtool', ['check', 'rules', '--lint-fatal', file], { encoding: 'utf8' })
    expect(check.status, check.stdout + check.stderr).toBe(0)
    expect(check.stdout).toMatch(/SUCCESS: [1-9]/)
  })
})

describe('the name of our image', () => {
  it('is one: in manifests, guide, container file, settings and help', () => {
    const files = ['deploy', 'docs', 'src', 'README.md', 'SECURITY.md'].flatMap((root) =>
      root.endsWith('.md')
        ? [root]
        : readdirSync(root, { recursive: true, encoding: 'utf8' }).map((name) => join(root, name)),
    )
    const uses = files
      .filter((file) => /(\.(md|ya?ml|ts)|Dockerfile)$/.test(file) && !file.endsWith('.test.ts'))
      .flatMap((file) =>
        readFileSync(file, 'utf8')
          .split('\n')
          .flatMap((line, i) => {
            const used =
              /(?:image: *|build .*-t |AGENT_IMAGE=|(?:new)?[nN]ame: |docker run .*?)["']?((?:[\w.-]+\/)*clusterpulse(?:\/clusterpulse)?)(?=[:@"'\s]|$)(.*)/.exec(
                line,
              )
            const isImage = used && (/image|build|docker|AGENT_IMAGE|newName/.test(line) || used[1]?.includes('/'))
            return isImage ? [{ where: `${relative('.', file)}:${i + 1}`, name: used[1] }] : []
          }),
      )
    expect(uses.length).toBeGreaterThan(5)
    // A registry may stand before it, where an operator keeps a copy.
    expect(uses.filter(({ name = '' }) => !/^([\w.-]+\.[\w.-]+\/)?clusterpulse\/clusterpulse$/.test(name))).toEqual([])
  })
})

function crdFolder(): string {
  return process.env.CRD_ASSETS ?? join(process.env.HOME ?? '', '.cache/clusterpulse/crds')
}
function noCrds(): string | undefined {
  return existsSync(crdFolder()) ? undefined : 'no CRD files of others: bash scripts/fetch-crds.sh, or CRD_ASSETS'
}
function promtoolPath(): string | undefined {
  const folders = [process.env.PROMTOOL_ASSETS ?? '', join(process.env.HOME ?? '', '.cache/clusterpulse/promtool')]
  return folders.map((folder) => join(folder, 'promtool')).find((path) => existsSync(path))
}
