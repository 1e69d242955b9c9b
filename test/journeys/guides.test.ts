import { chmodSync, chownSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { noContainers } from '../containers.ts'
import { dockerRun } from '../docker-run.ts'
import { Pods } from '../pods.ts'
import { eventually, program } from '../process.ts'
import { noRealApiServer } from '../real-apiserver.ts'

const missing = noContainers() ?? noRealApiServer() ?? redisMissing ?? victoriaMissing()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const guide = (name: string) => readFileSync(`docs/guide/${name}.md`, 'utf8')
const HUB = guide('kubernetes-hub')
const IMAGE = 'registry.example/clusterpulse/clusterpulse:0.1.0'
const NAMESPACE = 'clusterpulse'
const SLOW_MS = 120_000
/** robot with the password s3cret-of-the-robot, as `htpasswd -B` writes it. */
const HTPASSWD = 'robot:$2b$04$HHkvshdTcSp5J52uZHXMQ.8ID2cCtm8NSEfMMj8zg9gCDNQ6Pgk92\n'
const section = (title: string) => new RegExp(`${title}\\n([\\s\\S]*?)\\n##`)

/** What an operator does beside the first installation, as the guides say it, on a real kube-apiserver. */
describe.skipIf(why !== undefined)(`the guides${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let pods: Pods
  const which = (deployment: string, pod: number, namespace = NAMESPACE) => ({ namespace, deployment, pod })
  const hub = (...args: readonly string[]) => pods.kubectl('-n', NAMESPACE, ...args)
  const east = async (pod: number) => JSON.parse(await pods.inside(pod, '/api/v2/clusters')) as Answer
  const seen = (name: string, is: (one: Seen) => boolean) =>
    eventually(
      () => east(13),
      ({ items }) => items.some((one) => one.name === name && is(one)),
      SLOW_MS,
    )

  beforeAll(async () => {
    const names = { redis: 10, victoriametrics: 11, 'clusterpulse-ingester.clusterpulse.svc': 12 }
    pods = await Pods.open({ ...names, 'harbor.example.com': 15 })
    pods.apply(nodes)
    pods.follow(HUB, section('## 2\\. Secrets'))
    pods.follow(HUB, section('## 3\\. Your kustomization'))
    pods.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s')
    const redis = pods.startOther(which('redis', 10), ({ command = [], args = [] }) => [...command, ...args])
    pods.startOther(which('victoriametrics', 11), ({ args = [] }) => ['victoria-metrics', ...args])
    await redis.says(/Ready to accept connections/, SLOW_MS)
    pods.start(which('clusterpulse-manager', 12), IMAGE)
    pods.start(which('clusterpulse-api', 13), IMAGE)
    pods.follow(HUB, section('## 4\\. A member'))
    await seen('east', ({ nodes: read }) => read?.total === 2)
  })
  afterAll(() => pods?.[Symbol.asyncDispose]())

  it('metric-sources: none is called Active that nobody serves or that is refused, until the rights are given', {
    tags: ['long'],
  }, async () => {
    const text = guide('metric-sources')
    const phases = pods.keep(
      program('kubectl', [
        ...['--kubeconfig', pods.kubeconfig, '-n', NAMESPACE, 'get', 'metricsources', '-w'],
        ...['-o', 'jsonpath={.metadata.name} {.status.phase} {.status.message}{"\\n"}'],
      ]),
    )
    pods.follow(text, /On a \[hub on Kubernetes\]([\s\S]*?)\n`PHASE`/)
    for (const name of ['pvc-capacity', 'deployment-health', 'node-pressure', 'cronjobs'])
      await phases.says(new RegExp(`^${name} Active `, 'm'), SLOW_MS)
    await phases.says(/^certificates Error No cluster serves Certificate of cert-manager\.io\/v1$/m, SLOW_MS)
    expect(hub('get', 'metricsource', 'certificates')).toMatch(/certificates +Certificate +Error +0 +0/)

    const crds = process.env.CRD_ASSETS ?? join(process.env.HOME ?? '', '.cache/clusterpulse/crds')
    pods.kubectl('apply', '--server-side', '-f', join(crds, 'cert-manager.io_certificates.yaml'))
    pods.kubectl('wait', '--for=condition=Established', 'crd/certificates.cert-manager.io')
    hub('patch', 'metricsource', 'certificates', '--type=merge', '-p', '{"spec":{"collection":{"intervalSeconds":30}}}')
    await phases.says(/^certificates Error .*(forbidden|may not).*certificates/m, SLOW_MS)
    expect(phases.stdout()).not.toMatch(/^certificates Active/m)

    pods.follow(text, /give it more on the member, for instance:\n([\s\S]*?)\nWhat is missing/)
    await phases.says(/^certificates Active Collection successful/m, SLOW_MS)
  })

  it('registries: a registry of its own CA is refused until that is given, then read with its credentials', async () => {
    const at = (name: string) => join(pods.empty, name)
    writeFileSync(at('htpasswd'), HTPASSWD)
    const openssl = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '9']
    const subject = ['-subj', '/CN=harbor', '-addext', 'subjectAltName=DNS:harbor.example.com']
    const made = program('openssl', [...openssl, ...subject, '-keyout', at('h.key'), '-out', at('h.crt')])
    expect(await made.ended(), made.stderr()).toBe(0)
    writeFileSync(
      at('registry.yml'),
      `version: 0.1
log: { level: error, accesslog: { disabled: true } }
storage: { filesystem: { rootdirectory: ${at('registry')} } }
http: { addr: ':443', secret: for-tests, tls: { certificate: ${at('h.crt')}, key: ${at('h.key')} } }
auth: { htpasswd: { realm: test, path: ${at('htpasswd')} } }
`,
    )
    pods.beside(15, ['docker-registry', 'serve', at('registry.yml')])
    const text = guide('registries').replace('password: …', 'password: s3cret-of-the-robot')
    expect(pods.follow(text, /# Registries\n([\s\S]*?)\n## /)).toMatch(/^harbor /m)
    const status = async () =>
      (JSON.parse(hub('get', 'registryconnection', 'harbor', '-o', 'json')) as { status?: RegistryStatus }).status
    const condition = (type: string) => (found?: RegistryStatus) => found?.conditions?.find((one) => one.type === type)
    const refused = await eventually(status, (found) => condition('Ready')(found)?.status === 'False', SLOW_MS)
    expect(condition('Ready')(refused)?.message).toMatch(/certificate/)
    const caBundle = readFileSync(at('h.crt'), 'utf8')
    hub('patch', 'registryconnection', 'harbor', '--type=merge', '-p', JSON.stringify({ spec: { caBundle } }))
    const read = await eventually(status, (found) => condition('Ready')(found)?.status === 'True', SLOW_MS)
    expect(condition('CredentialsValid')(read)?.status).toBe('True')
    // A registry of Debian's has no such path as Harbor's, and the condition says which.
    expect(JSON.stringify(read)).toMatch(/api\/v2\.0\/health/)
    await eventually(
      () => pods.inside(13, '/api/v2/registries'),
      (registries) => /"name":"harbor"/.test(registries),
      SLOW_MS,
    )
  })

  it('push: a member out of reach is read by the agent of the manifest, and by that of the command for a container', async () => {
    const [, text = ''] = section('### A member the hub cannot reach').exec(HUB) ?? []
    const exec = / {4}kubectl -n clusterpulse exec deployment\/clusterpulse-manager -- \\\n +(.*) > edge-7\.yaml\n/
    const [line = '', words = ''] = exec.exec(text) ?? []
    const [before = '', after = ''] = text.split(line)
    pods.follow(`x\n${before}`, /x\n([\s\S]*)/)
    const connect = (output: string, name = 'edge-7') =>
      pods.exec(which('clusterpulse-manager', 12), words.replace('manifest', output).replace('edge-7', name).split(' '))
    const manifest = await connect('manifest')
    writeFileSync(join(pods.empty, 'edge-7.yaml'), manifest)
    pods.follow(`x\n${after}`, /x\n([\s\S]*)/)
    pods.start(which('clusterpulse-collector', 14, 'clusterpulse-system'), IMAGE)
    await seen('edge-7', ({ agent, nodes: read }) => agent?.connected === true && read?.total === 2)

    // Another such member, and any machine with its kubeconfig, which only its owner may read.
    pods.follow(`x\n${before.replaceAll('edge-7', 'edge-8')}`, /x\n([\s\S]*)/)
    const uid = 1234
    const home = join(pods.empty, 'home')
    const volume = join(pods.empty, 'volume')
    for (const folder of [join(home, '.kube'), volume]) mkdirSync(folder, { recursive: true })
    chmodSync(volume, 0o1777) // as /data of the image, which a new volume takes over
    const kubeconfig = join(home, '.kube/config')
    cpSync(pods.kubeconfig, kubeconfig)
    for (const path of [home, kubeconfig]) chownSync(path, uid, uid)
    chmodSync(kubeconfig, 0o600)
    const { image, uid: user, ...container } = dockerRun(await connect('docker', 'edge-8'), { uid, home, volume })
    expect([image, user]).toEqual([IMAGE, uid])
    const agent = pods.runImage(16, { ...container, uid: user })
    await seen('edge-8', (one) => one.agent?.connected === true && one.nodes?.total === 2).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${agent.stderr()}`)
    })
  })

  it('monitoring: every rule asks for what the manager says, of each member by its name', async () => {
    const rules = readFileSync('deploy/components/monitoring/rules.yaml', 'utf8')
    const asked = new Set([...rules.matchAll(/\bclusterpulse_\w+/g)].map(([name]) => name))
    // Of several owner processes, which test/journeys/owners.test.ts runs.
    expect(asked.delete('clusterpulse_owner_process_ends_total')).toBe(true)
    const said = await pods.inside(12, '/metrics')
    expect(asked.size).toBeGreaterThan(3)
    for (const name of asked) {
      const label = name.startsWith('clusterpulse_member_') ? 'cluster="edge-7"' : 'consumer="'
      expect(said).toMatch(new RegExp(`^${name}\\{[^}]*${label}`, 'm'))
    }
    const services = readFileSync('deploy/components/monitoring/service-monitor.yaml', 'utf8')
    const both = services + readFileSync('deploy/components/monitoring/api.yaml', 'utf8')
    const jobs = [...rules.matchAll(/job="([^"]+)"/g)].map(([, job = '']) => job)
    expect(jobs.length).toBe(2)
    // The operator calls a job after its Service.
    for (const job of jobs) expect(both).toMatch(new RegExp(`kind: Service\nmetadata:\n  name: ${job}\n`))
  })

  it('upgrade and backup: the kinds of a version can be applied over those that are there', () => {
    const crds = /npx clusterpulse crds \| kubectl apply .*?-f -/
    for (const name of ['upgrade', 'backup']) {
      const [line = ''] = crds.exec(guide(name)) ?? []
      const here = line.replace('npx clusterpulse', `${process.execPath} ${resolve('bin/clusterpulse.js')}`)
      expect(pods.follow(`x\n    ${here}`, /x\n([\s\S]*)/)).toMatch(
        /clusterconnections\.clusterpulse\.io (server|conf|unch)/,
      )
    }
  })

  it('history: promtool with the token of a service account reads what its policy shows, and no more', async () => {
    const more = HUB.replace('components/history\n', '$&      - ../clusterpulse/deploy/components/token-review\n')
    pods.follow(more.replace('mkdir hub', 'mkdir -p hub'), section('## 3\\. Your kustomization'))
    pods.follow(guide('sign-in'), section('### Who sees what, and programs'))
    const api = pods.start(which('clusterpulse-api', 17), IMAGE)
    await api.says(/ClusterPulse api on/, SLOW_MS)
    const [, shell = ''] = /The same from a shell:\n([\s\S]*?)\nEvery query/.exec(guide('history')) ?? []
    const command = shell.replace('https://clusterpulse.example.com', 'http://127.0.0.1:8080').replaceAll(/^ {4}/gm, '')
    const ask = async (text: string) => {
      const run = pods.beside(17, ['bash', '-euc', text], { cwd: pods.empty })
      return { status: await run.ended(), said: run.stdout() + run.stderr() }
    }
    const found = await eventually(
      () => ask(command),
      ({ said }) => /=>/.test(said),
      SLOW_MS,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${api.stderr()}`)
    })
    expect(found.said).toMatch(/^\{cluster="east"\} => 2 @/m)
    expect(found.said).not.toMatch(/edge/)
    const nobody = await ask(command.replace('--http.config.file=http.yaml', ''))
    expect([nobody.status === 0, nobody.said]).toEqual([false, expect.stringMatching(/unauthorized|sign|401/i)])
  })
})

interface Seen {
  readonly name: string
  readonly nodes: { readonly total: number } | null
  readonly agent: { readonly connected: boolean } | null
}
interface Answer {
  readonly items: readonly Seen[]
}
interface RegistryStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message: string }[]
}

const nodes = ['n1', 'n2']
  .map((name) => JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } }))
  .join('\n---\n')
