import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { noContainers } from '../containers.ts'
import { behindService } from '../member-hub.ts'
import { Pods } from '../pods.ts'
import { eventually, type Running } from '../process.ts'
import { noRealApiServer } from '../real-apiserver.ts'

const missing = noContainers() ?? noRealApiServer() ?? redisMissing ?? victoriaMissing()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const HUB = readFileSync('docs/guide/kubernetes-hub.md', 'utf8')
const JOINING = readFileSync('docs/guide/joining.md', 'utf8')
const IMAGE = 'registry.example/clusterpulse/clusterpulse:0.1.0'
const SLOW_MS = 120_000
const EXEC = / {4}kubectl -n clusterpulse exec deployment\/(clusterpulse-\w+) -- \\\n +\/usr\/local\/bin\/node (.*)\n/

/** The steps of the guide about members and the audit trail, from an empty folder, on a real kube-apiserver. */
describe.skipIf(why !== undefined)(
  `members of a hub on Kubernetes, as the guide has it${why === undefined ? '' : ` (not run: ${why})`}`,
  () => {
    let pods: Pods
    let manager: Running
    let api: Running
    const which = (deployment: string, pod: number, namespace = 'clusterpulse') => ({ namespace, deployment, pod })
    const sectionOf = (guide: string, title: string): string =>
      new RegExp(`## ${title}\\n([\\s\\S]*?)\\n## `).exec(guide)?.[1] ?? ''
    const follow = (text: string) => pods.follow(`x\n${text}`, /x\n([\s\S]*)/)
    /** `kubectl exec`, which takes a kubelet, in the place where the guide has it. @returns what stands before and after it, and its output */
    const exec = async (text: string) => {
      const [line = '', deployment = '', words = ''] = EXEC.exec(text) ?? []
      expect(line).not.toBe('')
      const [command = '', file] = words.split(' > ')
      const run = async () => {
        const out = await pods.exec(which(deployment, 12), ['/usr/local/bin/node', ...command.split(' ')])
        if (file !== undefined) writeFileSync(join(pods.empty, file), out)
        return out
      }
      return { before: text.slice(0, text.indexOf(line)), after: text.slice(text.indexOf(line) + line.length), run }
    }
    const startHub = () => {
      manager = pods.start(which('clusterpulse-manager', 12), IMAGE)
      api = pods.start(which('clusterpulse-api', 13), IMAGE)
    }
    const restartHub = async () => {
      await Promise.all([manager.kill('SIGTERM'), api.kill('SIGTERM')])
      startHub()
    }

    beforeAll(async () => {
      pods = await Pods.open({ redis: 10, victoriametrics: 11, 'clusterpulse-ingester.clusterpulse.svc': 12 })
      follow(sectionOf(HUB, '2\\. Secrets'))
      follow(sectionOf(HUB, '3\\. Your kustomization'))
      pods.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s')
      const redis = pods.startOther(which('redis', 10), ({ command = [], args = [] }) => [...command, ...args])
      pods.startOther(which('victoriametrics', 11), ({ args = [] }) => ['victoria-metrics', ...args])
      await redis.says(/Ready to accept connections/, SLOW_MS)
      startHub()
      await eventually(
        () => Promise.resolve(manager.stderr()),
        (said) => said.includes('agents are received'),
        SLOW_MS,
      )
    })
    afterAll(() => pods?.[Symbol.asyncDispose]())

    it('starts for the first time without a word of alarm', () =>
      expect(manager.stderr()).not.toMatch(/"level":"(warn|error)"/))

    it('joins a cluster from a pod of its own, by two yeses', async () => {
      const connect = await exec(sectionOf(HUB, '6\\. Members'))
      follow(connect.before)
      await restartHub()
      // What the cluster's own controller makes of the Service and the pod of the manager.
      pods.apply(behindService({ host: pods.address(12), port: 9444 }))
      await connect.run()
      const [apply = '', accept = ''] = connect.after.split('\nIts agent asks')
      await eventually(
        () =>
          Promise.resolve(pods.kubectl('get', 'validatingwebhookconfiguration', 'clusterpulse-members', '-o', 'json')),
        (text) => text.includes('caBundle'),
        SLOW_MS,
      )
      follow(apply)
      const agent = pods.start(which('clusterpulse-collector', 14, 'clusterpulse-system'), IMAGE)
      await eventually(
        () => Promise.resolve(pods.kubectl('get', 'csr', '-o', 'name')),
        (names) => names.includes('/edge-9-'),
        SLOW_MS,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${agent.stderr()}\n${manager.stderr()}`)
      })
      follow(accept)
      const seen = await eventually(
        () => pods.inside(13, '/api/v2/clusters'),
        (text) => /"name":"edge-9".*"source":"push"/.test(text),
        SLOW_MS,
      )
      expect(seen).toContain('"name":"edge-9"')
      // OCM's agent watches the older version, and ends itself where it cannot.
      pods.apply(`
apiVersion: addon.open-cluster-management.io/v1beta1
kind: ManagedClusterAddOn
metadata: { name: metrics, namespace: edge-9 }
spec: {}
`)
      const older = 'managedclusteraddons.v1alpha1.addon.open-cluster-management.io'
      const read = () => pods.kubectl('get', older, '-n', 'edge-9', '-o', 'jsonpath={.items[*].metadata.name}')
      await eventually(
        () => Promise.resolve().then(read).catch(String),
        (names) => names === 'metrics',
        SLOW_MS,
      )
      pods.kubectl('delete', 'managedclusteraddon', 'metrics', '-n', 'edge-9')
    })

    it('keeps the trail of it in files that outlive the pods, and verifies them', { tags: ['long'] }, async () => {
      const show = await exec(sectionOf(HUB, '7\\. An audit trail'))
      follow(show.before)
      await restartHub()
      await eventually(
        () => Promise.resolve(manager.stderr()),
        (said) => said.includes('the webhooks answer'),
        SLOW_MS,
      )
      pods.kubectl('patch', 'managedcluster', 'edge-9', '--type=merge', '-p', '{"spec":{"hubAcceptsClient":false}}')
      await eventually(show.run, (text) => /cluster_denied +managedcluster edge-9/.test(text), SLOW_MS)
      await restartHub()
      expect(await show.run()).toMatch(/cluster_denied +managedcluster edge-9/)
      const verify = await exec(show.after)
      expect(await verify.run()).toMatch(/^\/audit\/audit\.jsonl: \d+ entries, the chain is whole$/m)
    })

    it('takes the agent off the cluster with three commands, and nothing of others', async () => {
      const recipe = sectionOf(JOINING, 'Leave').replaceAll('delete namespace', 'delete --wait=false namespace')
      pods.kubectl('create', 'namespace', 'shop')
      follow(recipe)
      const kinds = 'clusterroles,clusterrolebindings,rolebindings'
      expect(pods.kubectl('get', kinds, '-A', '-o', 'name')).not.toMatch(/clusterpulse-(collector|executor)/)
      const phase = (name: string) => pods.kubectl('get', 'namespace', name, '-o', 'jsonpath={.status.phase}')
      expect([phase('clusterpulse-system'), phase('shop')]).toEqual(['Terminating', 'Active'])
    })
  },
)
