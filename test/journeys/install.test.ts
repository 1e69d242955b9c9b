import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { buildRootfs, noContainers, runContainer } from '../containers.ts'
import { eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

const missing = noContainers() ?? noRealApiServer() ?? redisMissing ?? victoriaMissing()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const GUIDE = 'docs/guide/kubernetes-hub.md'
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
/** As OpenShift assigns one to a namespace: no manifest fixes any. */
const UID = 1_000_660_000
const SLOW_MS = 120_000
/** Of the cluster, as its certificate says it; here the machine's end of the network of pods. */
const API = '10.0.0.1'

interface Source {
  readonly secretKeyRef?: { readonly name: string; readonly key: string }
  readonly fieldRef?: { readonly fieldPath: string }
}
interface PodSpec {
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly volumes?: readonly {
    readonly name: string
    readonly secret?: { readonly secretName: string }
    readonly configMap?: { readonly name: string }
  }[]
  readonly containers: readonly {
    readonly name: string
    readonly image: string
    readonly command?: readonly string[]
    readonly args?: readonly string[]
    readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[]
    readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: Source }[]
    readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
  }[]
}

describe.skipIf(why !== undefined)(
  `the guide to a hub on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`,
  () => {
    let folder: string
    let rootfs: string
    let real: RealApiServer
    const bridge = `cpb${process.pid % 100_000}`
    const networks: string[] = []
    const running: Running[] = []
    const kubectl = (...args: readonly string[]): string => {
      const run = spawnSync('kubectl', ['--kubeconfig', join(folder, 'kubeconfig'), ...args], { encoding: 'utf8' })
      expect(run.status, `kubectl ${args.join(' ')}: ${run.stderr}`).toBe(0)
      return run.stdout
    }
    const ip = (...args: readonly string[]) => {
      const run = spawnSync('ip', args, { encoding: 'utf8' })
      expect(run.status, `ip ${args.join(' ')}: ${run.stderr}`).toBe(0)
    }
    const hosts =
      '127.0.0.1 localhost\n10.0.0.10 redis\n10.0.0.11 victoriametrics\n10.0.0.1 kubernetes.default.svc\n10.0.0.12 clusterpulse-ingester.clusterpulse.svc\n'

    /** The indented commands of the guide's numbered sections, in their order. */
    const commands = (section: RegExp): string => {
      const [, text = ''] = section.exec(readFileSync(GUIDE, 'utf8')) ?? []
      const lines = text.split('\n').filter((line) => line.startsWith('    '))
      return lines.map((line) => line.slice(4)).join('\n')
    }
    const follow = (section: RegExp): string => {
      const script = commands(section)
      expect(script.split('\n').length).toBeGreaterThan(1)
      const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'kubeconfig') }
      const run = spawnSync('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
        cwd: join(folder, 'empty'),
        env,
        encoding: 'utf8',
      })
      expect(run.status, `${script}\n${run.stdout}\n${run.stderr}`).toBe(0)
      return run.stdout
    }

    /** A network of its own for a pod, on a bridge that is the cluster's. */
    const network = (n: number): string => {
      const name = `${bridge}-${n}`
      ip('netns', 'add', name)
      networks.push(name)
      ip('link', 'add', `${bridge}${n}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
      ip('link', 'set', `${bridge}${n}`, 'master', bridge, 'up')
      ip('-n', name, 'addr', 'add', `10.0.0.${n}/24`, 'dev', 'eth0')
      ip('-n', name, 'link', 'set', 'eth0', 'up')
      ip('-n', name, 'link', 'set', 'lo', 'up')
      return name
    }

    /** What a kubelet makes of the Deployment on the server: environment, mounts and token of its manifest. */
    const podOf = (namespace: string, name: string) => {
      const deployment = JSON.parse(kubectl('-n', namespace, 'get', 'deployment', name, '-o', 'json')) as {
        spec: { template: { spec: PodSpec } }
      }
      const spec = deployment.spec.template.spec
      const [container] = spec.containers
      if (!container) throw new Error(`${name} has no container`)
      expect(JSON.stringify(deployment)).not.toMatch(/runAsUser|"fsGroup":65532.*runAsUser/)
      const data = (kind: string, of: string) =>
        (JSON.parse(kubectl('-n', namespace, 'get', kind, of, '-o', 'json')) as { data?: Record<string, string> })
          .data ?? {}
      const secret = (of: string) =>
        Object.fromEntries(
          Object.entries(data('secret', of)).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]),
        )
      const env: Record<string, string> = {}
      for (const { configMapRef } of container.envFrom ?? []) Object.assign(env, data('configmap', configMapRef.name))
      for (const { name: variable, value, valueFrom } of container.env ?? []) {
        const { secretKeyRef, fieldRef } = valueFrom ?? {}
        const text = secretKeyRef ? secret(secretKeyRef.name)[secretKeyRef.key] : fieldRef ? namespace : value
        if (text === undefined) throw new Error(`CreateContainerConfigError: ${name} lacks ${variable}`)
        env[variable] = text
      }
      const mounts: Record<string, string> = {}
      const files = (at: string, content: Readonly<Record<string, string>>) => {
        const path = join(folder, 'pods', name, at)
        mkdirSync(path, { recursive: true })
        for (const [key, text] of Object.entries(content)) writeFileSync(join(path, key), text)
        mounts[at] = path
      }
      for (const { name: volume, mountPath } of container.volumeMounts ?? []) {
        const { secret: ofSecret, configMap } = spec.volumes?.find((one) => one.name === volume) ?? {}
        if (ofSecret) files(mountPath, secret(ofSecret.secretName))
        else if (configMap) files(mountPath, data('configmap', configMap.name))
        else {
          // A volume, made writable for the group of the pod.
          files(mountPath, {})
          chownSync(mounts[mountPath] ?? '', 0, UID)
          chmodSync(mounts[mountPath] ?? '', 0o2770)
        }
      }
      if (spec.automountServiceAccountToken !== false) {
        const token = kubectl('-n', namespace, 'create', 'token', spec.serviceAccountName ?? 'default').trim()
        files(ACCOUNT, { token, namespace, 'ca.crt': real.access.ca ?? '' })
        Object.assign(env, { KUBERNETES_SERVICE_HOST: API, KUBERNETES_SERVICE_PORT: '443' })
      }
      return { container, env, mounts }
    }
    /** A container of our image. */
    const start = (namespace: string, name: string, n: number): Running => {
      const { container, env, mounts } = podOf(namespace, name)
      expect(container.image).toBe('registry.example/clusterpulse/clusterpulse:0.1.0')
      expect(container.command).toBeUndefined()
      const one = runContainer({
        rootfs,
        args: container.args ?? [],
        env,
        uid: UID,
        mounts,
        network: network(n),
        hosts,
      })
      running.push(one)
      return one
    }
    /** A container of another image, by the program that Debian ships; its volume is a folder. */
    const startOther = (
      name: string,
      n: number,
      words: (container: PodSpec['containers'][number]) => readonly string[],
    ): Running => {
      const { container, env, mounts } = podOf('clusterpulse', name)
      const args = words(container).map((word) => word.replaceAll('=/data', `=${mounts['/data']}`))
      const user = ['setpriv', '--reuid', String(UID), '--regid', '0', '--groups', String(UID), '--no-new-privs']
      const command = ['netns', 'exec', network(n), ...user, ...args]
      const one = program('ip', command, { env, cwd: mounts['/data'] ?? folder })
      running.push(one)
      return one
    }
    /** Asked from inside a pod, as port-forward does. */
    const inside = async (n: number, path: string): Promise<string> => {
      const run = program('ip', [
        'netns',
        'exec',
        `${bridge}-${n}`,
        process.execPath,
        '-e',
        `fetch('http://127.0.0.1:8080${path}').then(async (a) => process.stdout.write(await a.text()))`,
      ])
      expect(await run.ended(), run.stderr()).toBe(0)
      return run.stdout()
    }

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'install-'))
      chmodSync(folder, 0o755)
      mkdirSync(join(folder, 'empty'))
      symlinkSync(resolve('.'), join(folder, 'empty/clusterpulse'))
      rootfs = buildRootfs()
      const server = await startRealApiServer()
      if (!server) throw new Error('no real kube-apiserver')
      real = server
      ip('link', 'add', bridge, 'type', 'bridge')
      ip('addr', 'add', `${API}/24`, 'dev', bridge)
      ip('link', 'set', bridge, 'up')
      const port = Number(new URL(real.access.server).port)
      // A process of its own: while a command is followed this one waits.
      const relay = `const { createServer, connect } = require('node:net')
      createServer((near) => {
        const far = connect(${port}, '127.0.0.1')
        const end = () => (near.destroy(), far.destroy())
        near.on('error', end).pipe(far).on('error', end).pipe(near)
      }).listen(443, '${API}', () => console.log('relays'))`
      const relaying = program(process.execPath, ['-e', relay])
      running.push(relaying)
      await relaying.says(/relays/)
      // One cluster is hub and member, by two names.
      const kubeconfig = real.kubeconfig.replace(real.access.server, `https://${API}`)
      writeFileSync(
        join(folder, 'kubeconfig'),
        `${kubeconfig}- name: east\n  context: { cluster: real, user: admin }\n`,
      )
    }, 240_000)
    afterAll(async () => {
      for (const one of running) await one[Symbol.asyncDispose]()
      for (const name of networks) spawnSync('ip', ['netns', 'del', name])
      spawnSync('ip', ['link', 'del', bridge])
      await real?.stop()
      for (const path of [folder, rootfs && dirname(rootfs)]) if (path) rmSync(path, { recursive: true, force: true })
    })

    it('leads from an empty folder to a page with a member and its agent', { timeout: 400_000 }, async () => {
      follow(/## 2\. Secrets\n([\s\S]*?)\n## /)
      follow(/## 3\. Your kustomization\n([\s\S]*?)\n## /)
      kubectl('wait', '--for=condition=Established', 'crd/clusterconnections.clusterpulse.io', '--timeout=60s')

      const redis = startOther('redis', 10, ({ command = [], args = [] }) => [...command, ...args])
      startOther('victoriametrics', 11, ({ args = [] }) => ['victoria-metrics', ...args])
      await redis.says(/Ready to accept connections/, SLOW_MS)
      const refused = spawnSync('ip', ['netns', 'exec', `${bridge}-10`, 'redis-cli', 'ping'], { encoding: 'utf8' })
      expect(refused.stdout).toMatch(/NOAUTH/)
      const manager = start('clusterpulse', 'clusterpulse-manager', 12)
      start('clusterpulse', 'clusterpulse-api', 13)

      follow(/## 4\. A member\n([\s\S]*?)\n## /)
      const clusters = async () => JSON.parse(await inside(13, '/api/v2/clusters')) as { items: readonly Seen[] }
      const east = (seen: { items?: readonly Seen[] }) => seen.items?.find(({ name }) => name === 'east')
      const pulled = await eventually(
        clusters,
        (seen) => east(seen)?.source === 'pull' && east(seen)?.health !== 'unknown',
        SLOW_MS,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${manager.stderr()}`)
      })
      expect(east(pulled)).toMatchObject({ displayName: 'East', agent: null })
      expect(await inside(13, '/')).toContain('<div id="root">')

      follow(/## 5\. Its agent\n([\s\S]*?)\n## /)
      await eventually(
        () =>
          Promise.resolve(
            spawnSync('kubectl', [
              '--kubeconfig',
              join(folder, 'kubeconfig'),
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
          `${String(error)}\n${kubectl('-n', 'clusterpulse', 'get', 'clusterconnection', 'east', '-o', 'yaml')}`,
        )
      })
      const agent = start('clusterpulse-system', 'clusterpulse-collector', 14)
      const pushed = await eventually(
        clusters,
        (seen) => east(seen)?.source === 'push' && east(seen)?.agent?.connected === true,
        SLOW_MS,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${agent.stderr()}`)
      })
      expect(east(pushed)?.agent).toMatchObject({ connected: true, tls: true })
      const conditions = kubectl(
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
