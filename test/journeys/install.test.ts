import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { noContainers } from '../containers.ts'
import { Pods } from '../pods.ts'
import { eventually } from '../process.ts'
import { noRealApiServer } from '../real-apiserver.ts'

const missing = noContainers() ?? noRealApiServer() ?? redisMissing ?? victoriaMissing() ?? noBrowser
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const GUIDE = 'docs/guide/kubernetes-hub.md'
const IMAGE = 'registry.example/clusterpulse/clusterpulse:0.1.0'
const SLOW_MS = 120_000

describe.skipIf(why !== undefined)(
  `the guide to a hub on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`,
  () => {
    let pods: Pods
    beforeAll(async () => {
      pods = await Pods.open({ redis: 10, victoriametrics: 11, 'clusterpulse-ingester.clusterpulse.svc': 12 })
    })
    afterAll(() => pods?.[Symbol.asyncDispose]())
    const follow = (section: RegExp) => pods.follow(readFileSync(GUIDE, 'utf8'), section)
    const which = (deployment: string, pod: number, namespace = 'clusterpulse') => {
      const one = { namespace, deployment, pod }
      expect(JSON.stringify(pods.read(one).spec)).not.toMatch(/runAsUser/)
      return one
    }

    it('leads from an empty folder to a page with a member and its agent', async () => {
      follow(/## 2\. Secrets\n([\s\S]*?)\n## /)
      follow(/## 3\. Your kustomization\n([\s\S]*?)\n## /)
      pods.kubectl('wait', '--for=condition=Established', 'crd/clusterconnections.clusterpulse.io', '--timeout=60s')

      const redis = pods.startOther(which('redis', 10), ({ command = [], args = [] }) => [...command, ...args])
      pods.startOther(which('victoriametrics', 11), ({ args = [] }) => ['victoria-metrics', ...args])
      await redis.says(/Ready to accept connections/, SLOW_MS)
      const refused = spawnSync('ip', ['netns', 'exec', pods.network(10), 'redis-cli', 'ping'], { encoding: 'utf8' })
      expect(refused.stdout).toMatch(/NOAUTH/)
      const manager = pods.start(which('clusterpulse-manager', 12), IMAGE)
      pods.start(which('clusterpulse-api', 13), IMAGE)

      follow(/## 4\. A member\n([\s\S]*?)\n## /)
      const clusters = async () => JSON.parse(await pods.inside(13, '/api/v2/clusters')) as { items: readonly Seen[] }
      const east = (seen: { items?: readonly Seen[] }) => seen.items?.find(({ name }) => name === 'east')
      const pulled = await eventually(
        clusters,
        (seen) => east(seen)?.source === 'pull' && east(seen)?.health !== 'unknown',
        SLOW_MS,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${manager.stderr()}`)
      })
      expect(east(pulled)).toMatchObject({ displayName: 'East', agent: null })
      expect(await pods.inside(13, '/')).toContain('<div id="root">')

      follow(/## 5\. Its agent\n([\s\S]*?)\n##/)
      await eventually(
        () =>
          Promise.resolve(
            spawnSync('kubectl', [
              '--kubeconfig',
              pods.kubeconfig,
              '-n',
              'clusterpulse-system',
              'get',
              'deployment',
              'clusterpulse-collector',
            ]),
          ),
        ({ status }) => status === 0,
        SLOW_MS,
      ).catch((error: unknown) => {
        throw new Error(
          `${String(error)}\n${pods.kubectl('-n', 'clusterpulse', 'get', 'clusterconnection', 'east', '-o', 'yaml')}`,
        )
      })
      const agent = pods.start(which('clusterpulse-collector', 14, 'clusterpulse-system'), IMAGE)
      const pushed = await eventually(
        clusters,
        (seen) => east(seen)?.source === 'push' && east(seen)?.agent?.connected === true,
        SLOW_MS,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${agent.stderr()}`)
      })
      expect(east(pushed)?.agent).toMatchObject({ connected: true, tls: true })
      // As people see it, by a port-forward.
      const browser = await openBrowser(`--host-resolver-rules=MAP localhost:8080 ${await pods.forward(13)}`)
      try {
        const page = await browser.newPage()
        await page.goto('http://localhost:8080/')
        await page.getByRole('link', { name: 'East' }).first().click({ timeout: 60_000 })
        await page.getByRole('heading', { level: 1, name: 'East' }).waitFor({ timeout: 60_000 })
        await page.getByText(/agent \d+\.\d+\.\d+\S* connected/).waitFor({ timeout: 60_000 })
      } finally {
        await browser.close()
      }
      const conditions = pods.kubectl(
        '-n',
        'clusterpulse',
        'get',
        'clusterconnection',
        'east',
        '-o',
        'jsonpath={.status.conditions}',
      )
      expect(conditions).toMatch(/"type":"BufferNotDurable"/)

      // Where the member can provide a volume, the rights of the guide suffice to claim one.
      pods.apply(defaultClass)
      const wish = '{"spec":{"monitoring":{"interval":60}}}'
      pods.kubectl('-n', 'clusterpulse', 'patch', 'clusterconnection', 'east', '--type=merge', '-p', wish)
      const claims = () => pods.kubectl('-n', 'clusterpulse-system', 'get', 'pvc', '-o', 'name')
      await eventually(
        () => Promise.resolve(claims()),
        (said) => said.includes('persistentvolumeclaim/clusterpulse-collector'),
        SLOW_MS,
      )
      expect(manager.stderr()).not.toMatch(/"level":"error"/)
    })
  },
)

const defaultClass = JSON.stringify({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: 'example.com/fast',
})

interface Seen {
  readonly name: string
  readonly source: string
  readonly health: string
  readonly agent: { readonly connected: boolean } | null
}
