import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { noContainers } from '../containers.ts'
import { Pods } from '../pods.ts'
import { eventually } from '../process.ts'
import { noRealApiServer } from '../real-apiserver.ts'

const missing = noContainers() ?? noRealApiServer() ?? redisMissing ?? victoriaMissing()
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
    }, 240_000)
    afterAll(() => pods?.[Symbol.asyncDispose]())
    const follow = (section: RegExp) => pods.follow(readFileSync(GUIDE, 'utf8'), section)
    const which = (deployment: string, pod: number, namespace = 'clusterpulse') => {
      const one = { namespace, deployment, pod }
      expect(JSON.stringify(pods.read(one).spec)).not.toMatch(/runAsUser/)
      return one
    }

    it('leads from an empty folder to a page with a member and its agent', { timeout: 400_000 }, async () => {
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

      follow(/## 5\. Its agent\n([\s\S]*?)\n## /)
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
      expect(manager.stderr()).not.toMatch(/"level":"error"/)
    })
  },
)

interface Seen {
  readonly name: string
  readonly source: string
  readonly health: string
  readonly agent: { readonly connected: boolean } | null
}
