import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generateServingCertificate } from '#apiserver'
import { AgentServer, type AgentServerOptions } from '#ingest'
import { encodeJoinText } from '#wire'
import { IdentityFiles } from '../../pipeline/agent/join/identity-files.ts'
import { certificateRequests, keyOf, stateOf } from './certificate-request.ts'
import { accept } from './decisions.ts'
import { managedClusters } from './members.ts'
import { aJoiningHub, cluster, type JoiningHub } from './testing/joining-hub.ts'

/** how often machines are killed; more on request (`npm run soak join`) */
const KILLS = Number(process.env.JOIN_KILLS ?? 12)
const KILLS_OF_ONE = 4
const LIMIT_MS = 120_000 + KILLS * 10_000

let hub: JoiningHub
let server: AgentServer
let directory = ''
let program = ''
let caFingerprint = ''

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'join-kill-'))
  const cache = resolve('node_modules/.cache/clusterpulse')
  await mkdir(cache, { recursive: true })
  program = join(cache, `join-kill-${process.pid}.mjs`)
  await build({
    entryPoints: [join(import.meta.dirname, 'testing/join-child.ts')],
    ...{ outfile: program, bundle: true, platform: 'node', target: 'node20', format: 'esm' },
    ...{ packages: 'external', logLevel: 'error' },
  })
  hub = await aJoiningHub()
  const { cert, key, ca } = await generateServingCertificate({ hosts: ['127.0.0.1'] })
  const files = { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') }
  await writeFile(files.certFile, `${cert}${ca}`)
  await writeFile(files.keyFile, key)
  const { X509Certificate } = await import('node:crypto')
  caFingerprint = new X509Certificate(ca).fingerprint256.replaceAll(':', '').toLowerCase()
  server = await AgentServer.start({
    ...{ host: '127.0.0.1', port: 0, tls: files, joins: hub.desk },
    verifier: { verify: () => ({ refused: 'unknown' }), stillValid: () => false, onChange: () => () => undefined },
    plans: { planOf: () => undefined, onChange: () => () => undefined },
    ingester: {} as AgentServerOptions['ingester'], // nobody who joins delivers anything
  })
}, 60_000)
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await hub?.[Symbol.asyncDispose]()
  await rm(program, { force: true })
  await rm(directory, { recursive: true, force: true })
})

function start(
  folder: string,
  token: string,
): {
  child: ChildProcess
  closed: Promise<unknown[]>
  said: () => string
} {
  const child = spawn(process.execPath, [program, folder, token], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk) => {
      said += String(chunk)
    })
  // Heard from the start: it may end by itself before anybody waits for it.
  return { child, closed: once(child, 'close'), said: () => said }
}

const requestsOf = (name: string) =>
  hub.kube.listAll(certificateRequests, { labelSelector: `open-cluster-management.io/cluster-name=${name}` })

describe('machines that are killed at any moment of their bootstrap', () => {
  it(
    `become members all the same, each once, with one key (${KILLS} kills)`,
    async () => {
      for (let kills = 0, number = 0; kills < KILLS; number++) {
        const name = cluster(`k${number}`)
        const secret = await hub.tokens.issue(name, 3_600_000)
        const { port } = server.address
        const token = encodeJoinText({ cluster: name, secret, addresses: [`127.0.0.1:${port}`], caFingerprint })
        const folder = join(directory, name)
        const everything: string[] = []
        // A person says yes while the machine comes and goes.
        const accepted = (async () => {
          for (;;) {
            await sleep(randomInt(200))
            await accept({ hub: hub.kube, cluster: name }).catch(() => undefined) // it has not asked yet
            if ((await requestsOf(name)).some((one) => stateOf(one).kind !== 'pending')) return
          }
        })()
        const ofOne = randomInt(1, KILLS_OF_ONE + 1)
        for (let kill = 0; kill < ofOne && kills < KILLS; kill++, kills++) {
          const { child, closed, said } = start(folder, token)
          await Promise.race([once(child.stdout ?? child, 'data'), closed])
          await sleep(randomInt(150))
          child.kill('SIGKILL')
          await closed
          everything.push(said())
        }
        const { closed, said } = start(folder, token)
        const [code] = (await closed) as [number | null]
        everything.push(said())
        expect(code, said()).toBe(0)
        await accepted

        const files = new IdentityFiles(folder)
        const member = await files.member()
        expect(member?.cluster).toBe(name)
        expect((await readdir(folder)).filter((file) => !file.endsWith('.new'))).toEqual(['member.json'])
        for (const file of await readdir(folder)) expect((await stat(join(folder, file))).mode & 0o077).toBe(0)
        const requests = await requestsOf(name)
        expect(new Set(requests.map(keyOf)).size).toBe(1)
        expect(requests).toHaveLength(1)
        expect(await hub.kube.get(managedClusters, { name })).toMatchObject({ spec: { hubAcceptsClient: true } })
        expect(everything.join()).not.toContain(secret)
        expect(everything.join()).not.toContain('PRIVATE KEY')
      }
    },
    LIMIT_MS,
  )
})
