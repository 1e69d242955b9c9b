import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  accessForContext,
  createKubeClient,
  type KubeClient,
  type KubeObject,
  loadKubeconfig,
  type Resource,
} from '#kube'
import { readEvent } from '../../src/pipeline/publish/testing/events.ts'
import {
  natsPrograms,
  natsPython,
  natsPythonMissing,
  startNats,
  type TestNats,
} from '../../src/platform/nats/testing/nats-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, startRealApiServer } from '../real-apiserver.ts'

/** How long the member's API does not answer, s; `npm run soak nats` waits longer. */
const AWAY_S = Number(process.env.MEMBER_AWAY_S ?? 12)
const SLOW_MS = 120_000
const bin = resolve('bin/clusterpulse.js')
/** A dot in it: one token on the subject all the same. */
const EDGE = 'edge.7'

interface Status {
  readonly containerStatuses?: readonly {
    readonly name: string
    readonly restartCount: number
    readonly state?: End
    readonly lastState?: End
  }[]
}
type End = { readonly terminated?: { readonly reason?: string } }
const pods: Resource<KubeObject & { readonly status?: Status }> = {
  ...{ group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true },
}

interface Told {
  readonly subject: string
  readonly headers: Readonly<Record<string, string>>
  readonly metadata: { readonly entity_id: string }
  readonly pods?: readonly {
    readonly namespace: string
    readonly name: string
    readonly container: string
    readonly restart_count: number
    readonly oom_killed: boolean
  }[]
  readonly nodes?: readonly { readonly name: string; readonly cpu_percent: number }[]
}

const why = natsPythonMissing
// src/pipeline/publish/publisher.test.ts asks both servers for all of this but the processes around it.
const programs = natsPrograms.map((server, at) => ({ server, tags: at === 0 ? [] : ['again'] }))
for (const { server, tags } of programs)
  describe.skipIf(why !== undefined)(
    `a consumer in Python of the guide${why === undefined ? '' : ` (not run: ${why})`}, at ${server.name}`,
    { tags },
    () => {
      let directory: string
      let members: Running
      let nats: TestNats
      let consumer: Running
      let hub: Running
      let agent: Running
      let kube: KubeClient
      let agentLine: string
      let port = 0
      let ingesterPort = 0
      const at = (name: string) => join(directory, name)

      const startHub = async () => {
        hub = clusterpulse(
          [
            ...['up', '--kubeconfig', at('members'), '--data-dir', at('hub'), '--port', '0'],
            ...['--control-plane-port', String(port), '--ingester-port', String(ingesterPort)],
          ],
          { env: { NATS_URL: nats.url, NATS_PERIOD: '1s', DEFAULT_CLUSTER: 'sim-001' } },
        )
        await hub.says(/on (http:\S+)/)
      }
      const startAgent = () => {
        const env = { KUBECONFIG: at('members'), BUFFER_DIR: at('buffer'), HEALTH_ADDRESS: '127.0.0.1:0' }
        agent = program('sh', ['-c', agentLine], { env, cwd: directory })
      }
      const told = (): readonly Told[] =>
        consumer
          .stdout()
          .split('\n')
          .filter((line) => line.endsWith('}'))
          .map((line) => JSON.parse(line) as Told)
      const newest = (subject: string) => told().findLast((one) => one.subject === subject)
      /** As many more on each subject. */
      const goesOn = async (more = 2) => {
        const count = (subject: string) => told().filter((one) => one.subject === subject).length
        const subjects = ['cluster.metrics', 'cluster.pods', 'cluster.edge_7.metrics', 'cluster.edge_7.pods']
        const before = subjects.map(count)
        await eventually(
          async () => subjects.map((subject, i) => count(subject) - (before[i] ?? 0)),
          (counts) => counts.every((n) => n >= more),
          SLOW_MS,
        ).catch((error: unknown) => {
          throw new Error(
            `${String(error)}\nhub: ${hub.stderr().slice(-3000)}\nconsumer: ${consumer.stderr().slice(-1000)}`,
          )
        })
      }
      /** What the member's API says of its containers. */
      const containers = async () =>
        (await kube.listAll(pods)).flatMap(({ metadata, status }) =>
          (status?.containerStatuses ?? []).map(({ name, restartCount, state, lastState }) =>
            [
              ...[metadata.namespace, metadata.name, name, restartCount],
              [state, lastState].some((one) => one?.terminated?.reason === 'OOMKilled'),
            ].join(' '),
          ),
        )
      const toldContainers = (subject: string) =>
        (newest(subject)?.pods ?? []).map((one) =>
          [one.namespace, one.name, one.container, one.restart_count, one.oom_killed].join(' '),
        )

      beforeAll(async () => {
        if (server.missing !== undefined || why !== undefined) return
        directory = await mkdtemp(join(tmpdir(), 'nats-journey-'))
        ;[port, ingesterPort] = [await freePort(), await freePort()]
        members = clusterpulse([
          ...['simulate', '--clusters', '1', '--nodes', '3', '--pods', '20', '--kubeconfig-out', at('members')],
        ])
        await members.says(/kubeconfig in/)
        kube = createKubeClient(await accessForContext(await loadKubeconfig([at('members')])))
        nats = await startNats(server)
        await startHub()
        const connect = clusterpulse(['connect', EDGE, '--bearer-token', '--kubeconfig', at('hub/kubeconfig')])
        expect(await connect.ended(), connect.stderr()).toBe(0)
        agentLine = connect.stdout().replace('npx clusterpulse', `exec ${process.execPath} ${bin}`)
        startAgent()
        await startConsumer()
      }, 2 * SLOW_MS)
      afterAll(async () => {
        for (const one of [consumer, agent, hub, members, kube, nats]) await one?.[Symbol.asyncDispose]()
        if (directory !== undefined) await rm(directory, { recursive: true, force: true })
      })

      /** As the guide says it. */
      async function startConsumer(): Promise<void> {
        const guide = await readFile('docs/guide/nats.md', 'utf8')
        const [, code = ''] = /```python\n([\s\S]*?)```/.exec(guide) ?? []
        await writeFile(at('consumer.py'), code)
        const [, line = ''] = /^ {4}python\/bin\/python (-m grpc_tools.*)$/m.exec(guide) ?? []
        const words = line.replace('-I proto', `-I ${resolve('proto')}`).split(' ')
        const compiled = program(natsPython, words, { cwd: directory })
        expect(await compiled.ended(), compiled.stderr()).toBe(0)
        // The stream is made by the hub, and somebody who subscribes before that is refused.
        await eventually(
          async () => {
            const run = program(natsPython, ['consumer.py', nats.url], { cwd: directory })
            await run.says(/"subject"/, 20_000).catch(async (error: unknown) => {
              await run[Symbol.asyncDispose]()
              throw error
            })
            return run
          },
          (run) => {
            consumer = run
            return true
          },
          SLOW_MS,
        )
      }

      it.skipIf(server.missing !== undefined)(
        'has both subjects of both clusters, nothing twice whatever is restarted, and in the end what the member says',
        async () => {
          await goesOn()
          const subjects = { 'cluster.pods': 'sim-001', 'cluster.edge_7.pods': EDGE, 'cluster.metrics': 'sim-001' }
          for (const [subject, cluster] of Object.entries(subjects))
            expect(newest(subject)?.metadata.entity_id, subject).toBe(cluster)
          expect(newest('cluster.metrics')?.nodes).toHaveLength(3)

          await nats.kill()
          await new Promise((resolve) => setTimeout(resolve, 4000)) // some periods: the time itself is the case
          await nats.start()
          await goesOn()

          await hub.kill('SIGKILL')
          await hub.ended()
          await startHub()
          await goesOn()

          await agent.kill('SIGKILL')
          startAgent()
          await goesOn()

          process.kill(members.pid, 'SIGSTOP')
          await new Promise((resolve) => setTimeout(resolve, AWAY_S * 1000))
          process.kill(members.pid, 'SIGCONT')
          await goesOn()

          const [gone] = await kube.listAll(pods)
          await kube.delete(pods, { name: gone?.metadata.name ?? '', namespace: gone?.metadata.namespace ?? '' })
          const wanted = (await containers()).sort()
          for (const subject of ['cluster.pods', 'cluster.edge_7.pods'])
            await eventually(
              async () => [(await containers()).sort(), toldContainers(subject).sort()] as const,
              ([said, heard]) =>
                JSON.stringify(said) === JSON.stringify(heard) &&
                !heard.some((one) => one.includes(` ${gone?.metadata.name} `)),
              SLOW_MS,
            )
          expect(wanted.length).toBeGreaterThan(0)

          const ids = told().map(({ headers }) => headers['Nats-Msg-Id'])
          expect(ids.length).toBeGreaterThan(20)
          expect(new Set(ids).size).toBe(ids.length)
        },
        8 * SLOW_MS + AWAY_S * 1000,
      )

      it.skipIf(server.missing !== undefined)(
        'has what the command in the place of Cluster Monitor publishes, of the pods that it shows alone',
        async () => {
          const name = 'alone'
          const words = ['-addr', '127.0.0.1:0', '-refresh', '1s', '-nats', nats.url, '--kubeconfig', at('members')]
          await using monitor = clusterpulse(['cluster-monitor', ...words], {
            env: { DATA_DIR: at('monitor'), DEFAULT_CLUSTER: name, MONITOR_SYSTEM_NAMESPACE: 'kube-system' },
          })
          await monitor.says(/interface is on/)
          const ofCommand = (subject: string) =>
            told().findLast((one) => one.subject === subject && one.metadata.entity_id === name)
          const pods_ = await eventually(
            () => Promise.resolve(ofCommand('cluster.pods')),
            (event) => (event?.pods?.length ?? 0) > 0,
            SLOW_MS,
          )
          expect(new Set(pods_?.pods?.map(({ namespace }) => namespace))).toEqual(new Set(['kube-system']))
          const nodes = await eventually(
            () => Promise.resolve(ofCommand('cluster.metrics')?.nodes),
            (known) => known?.length === 3 && known.every(({ cpu_percent }) => cpu_percent > 0),
            SLOW_MS,
          )
          expect(nodes).toHaveLength(3)
        },
        4 * SLOW_MS,
      )
    },
  )

const [first] = natsPrograms
const noApi = why ?? first?.missing ?? noRealApiServer()
const isRequired = process.env.CI_REQUIRE_ALL === '1'

/** No kubelet is there: what one would say of its containers is written by hand. */
describe.skipIf(noApi !== undefined && !isRequired)(
  `a consumer beside a real kube-apiserver${noApi === undefined ? '' : ` (not run: ${noApi})`}`,
  () => {
    it('is told of a container that was killed for lack of memory, as kubectl tells of it', {
      timeout: 4 * SLOW_MS,
    }, async () => {
      if (!first) throw new Error('there is a program')
      const api = await startRealApiServer()
      if (!api) throw new Error('there is a kube-apiserver')
      onTestFinished(() => api.stop())
      const folder = await mkdtemp(join(tmpdir(), 'nats-real-'))
      onTestFinished(() => rm(folder, { recursive: true, force: true }))
      const kubeconfig = join(folder, 'kubeconfig')
      await writeFile(kubeconfig, api.kubeconfig)
      await using nats = await startNats(first)
      const kubectl = async (args: readonly string[], input?: string) => {
        const run = program(
          join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubectl'),
          ['--kubeconfig', kubeconfig, ...args],
          input === undefined ? {} : { input },
        )
        expect(await run.ended(), run.stderr()).toBe(0)
        return run.stdout()
      }
      const pod = (name: string) => ({
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'core' } },
        spec: {
          automountServiceAccountToken: false,
          containers: ['web', 'log'].map((one) => ({ name: one, image: 'none' })),
        },
      })
      const say = (name: string, containerStatuses: readonly object[]) =>
        kubectl([
          ...['patch', 'pod', name, '-n', 'core', '--subresource=status', '--type=merge'],
          ...['-p', JSON.stringify({ status: { phase: 'Running', containerStatuses } })],
        ])
      const status = (name: string, restartCount: number, lastState: object = {}) => ({
        ...{ name, restartCount, lastState, ready: true, started: true, image: 'none', imageID: '' },
        state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
      })
      await kubectl(['create', 'namespace', 'core'])
      await kubectl(['create', 'serviceaccount', 'default', '-n', 'core']).catch(() => undefined)
      for (const name of ['a', 'b']) await kubectl(['apply', '-f', '-'], JSON.stringify(pod(name)))
      await say('a', [status('web', 0), status('log', 2)])

      const words = ['-addr', '127.0.0.1:0', '-refresh', '1s', '-nats', nats.url]
      await using monitor = clusterpulse(['cluster-monitor', ...words, '--kubeconfig', kubeconfig], {
        env: { DATA_DIR: join(folder, 'data') },
      })
      await monitor.says(/interface is on/)
      const newest = async () => {
        const nc = await connect({ servers: `127.0.0.1:${nats.port}` })
        try {
          const { streams } = await jetstreamManager(nc)
          const message = await streams.getMessage('CLUSTER', { last_by_subj: 'cluster.pods' })
          return readEvent('pods', message?.data ?? new Uint8Array()).pods?.map((one) => [
            ...[one.name, one.container, one.restart_count, one.oom_killed],
          ])
        } finally {
          await nc.close()
        }
      }
      const told = (wanted: readonly unknown[]) =>
        eventually(newest, (found) => JSON.stringify(found) === JSON.stringify(wanted), SLOW_MS)
      // A pod without statuses has no entry.
      await told([
        ['a', 'web', 0, false],
        ['a', 'log', 2, false],
      ])
      const killed = { terminated: { exitCode: 137, reason: 'OOMKilled', containerID: '' } }
      await say('a', [status('web', 1, killed), status('log', 2)])
      await told([
        ['a', 'web', 1, true],
        ['a', 'log', 2, false],
      ])
      const said = JSON.parse(await kubectl(['get', 'pods', '-A', '-o', 'json'])) as { readonly items: readonly Said[] }
      expect(await newest()).toEqual(
        said.items.flatMap(({ metadata, status: { containerStatuses = [] } }) =>
          containerStatuses.map((one) => [
            ...[metadata.name, one.name, one.restartCount],
            one.lastState?.terminated?.reason === 'OOMKilled',
          ]),
        ),
      )
      await kubectl(['delete', 'pod', 'a', '-n', 'core', '--force', '--grace-period=0'])
      await told([])
    })
  },
)

interface Said {
  readonly metadata: { readonly name: string }
  readonly status: Status
}
