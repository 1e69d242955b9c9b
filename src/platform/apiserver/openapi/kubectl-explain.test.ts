import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiListener, listenApi } from '../listen.ts'
import { ApiServer } from '../server.ts'

const folder = process.env.KUBEBUILDER_ASSETS
const candidates = [...(folder ? [join(folder, 'kubectl')] : []), '/usr/local/bin/kubectl', '/usr/bin/kubectl']
const programs = candidates.filter((path) => existsSync(path))
const versions = programs.map((program) => {
  const { stdout } = spawnSync(program, ['version', '--client', '-o', 'json'], { encoding: 'utf8' })
  return {
    program,
    version: (JSON.parse(stdout) as { clientVersion: { gitVersion: string } }).clientVersion.gitVersion,
  }
})
const missing = programs.length === 0 && process.env.CI_REQUIRE_ALL !== '1' ? ' (no kubectl here)' : ''
if (programs.length === 0 && process.env.CI_REQUIRE_ALL === '1') throw new Error('kubectl is required')

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: 'A thing with a size.',
            properties: {
              spec: {
                type: 'object',
                description: 'what is wanted',
                required: ['size'],
                properties: {
                  size: { type: 'integer', description: 'how large it shall be' },
                  parts: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
                  any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  port: { 'x-kubernetes-int-or-string': true },
                  note: { type: 'string', nullable: true },
                },
              },
              status: { type: 'object', properties: { ready: { type: 'boolean' } } },
            },
          },
        },
      },
    ],
  },
}

const deployment = (image: string, more = '') => `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "${image}"${more}}
      - {name: side, image: "side:1"}
`

describe.skipIf(versions.length === 0)(`schemas for kubectl${missing}`, () => {
  describe.each(versions)('$version', ({ program }) => {
    let server: ApiServer
    let listener: ApiListener
    const home = mkdtempSync(join(tmpdir(), 'kubectl-'))

    beforeAll(async () => {
      server = await ApiServer.open({ runsWorkloads: true, storage: { kind: 'memory' } })
      await server.objects.create(definition)
      listener = await listenApi({
        mounts: new Map([['/clusters/east', server]]),
        tokens: [{ token: 'suite-token', user: 'joe', groups: ['system:masters'] }],
      })
      writeFileSync(
        join(home, 'kubeconfig'),
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Config',
          'current-context': 'c',
          clusters: [
            {
              name: 'c',
              cluster: {
                server: `${listener.url}/clusters/east`,
                'certificate-authority-data': Buffer.from(listener.caPem).toString('base64'),
              },
            },
          ],
          users: [{ name: 'c', user: { token: 'suite-token' } }],
          contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
        }),
      )
    })
    afterAll(async () => {
      await listener?.[Symbol.asyncDispose]()
      await server?.[Symbol.asyncDispose]()
      rmSync(home, { recursive: true, force: true })
    })

    /** @returns what it prints; fails with that where it fails. */
    function kubectl(...args: string[]): Promise<string> {
      return new Promise((resolve, reject) => {
        const env = { HOME: home, KUBECONFIG: join(home, 'kubeconfig'), PATH: process.env.PATH ?? '' }
        execFile(program, args, { env, timeout: 15_000 }, (error, stdout, stderr) => {
          // `kubectl diff` ends with 1 where it finds a difference.
          if (error && !(args[0] === 'diff' && error.code === 1 && stdout)) reject(new Error(stdout + stderr))
          else resolve(stdout + stderr)
        })
      })
    }

    function file(content: string): string {
      const path = join(home, 'manifest.yaml')
      writeFileSync(path, content)
      return path
    }

    it('explains kinds and fields of the API', async () => {
      expect(await kubectl('explain', 'pods')).toMatch(/KIND: +Pod\nVERSION: +v1\n[\s\S]*spec\t<PodSpec>/)
      const ports = await kubectl('explain', 'deployment.spec.template.spec.containers.ports')
      expect(ports).toMatch(/FIELD: ports <\[\]ContainerPort>[\s\S]*containerPort\t<integer> -required-/)
      expect(await kubectl('explain', 'node', '--recursive')).toMatch(/\n {2}status\t<NodeStatus>\n {4}addresses\t/)
      await expect(kubectl('explain', 'pods.spec.nothing')).rejects.toThrow('does not exist')
    })

    it('explains custom kinds as their definition describes them', async () => {
      const spec = await kubectl('explain', 'widgets.spec')
      expect(spec).toMatch(/GROUP: +example.com\nKIND: +Widget\nVERSION: +v1\n/)
      expect(spec).toMatch(/size\t<integer> -required-\n +how large it shall be/)
      expect(await kubectl('explain', 'widgets')).toMatch(/A thing with a size[\s\S]*metadata\t<ObjectMeta>/)
      expect(await kubectl('explain', 'widgets.spec.parts.name')).toMatch(/FIELD: name <string>/)
    })

    it('explains from the older description too', async () => {
      const older = ['--output=plaintext-openapiv2']
      expect(await kubectl('explain', 'widgets.spec', ...older)).toMatch(/size\t<integer> -required-/)
      expect(await kubectl('explain', 'node.status.capacity', ...older)).toMatch(/map\[string\]/)
    })

    it('applies, shows the difference and applies again', async () => {
      expect(await kubectl('apply', '-f', file(deployment('web:1')))).toBe('deployment.apps/web created\n')
      expect(await kubectl('diff', '-f', file(deployment('web:2')))).toMatch(
        /-\s+- image: web:1\n\+\s+- image: web:2\n/,
      )
      expect(await kubectl('apply', '-f', file(deployment('web:2')))).toBe('deployment.apps/web configured\n')
      expect(await kubectl('apply', '-f', file(deployment('web:2')))).toBe('deployment.apps/web unchanged\n')
    })

    it('merges lists of built-in kinds by their keys', async () => {
      await kubectl('apply', '-f', file(deployment('web:1')))
      // Somebody else adds a container: what kubectl applies says nothing of it, so it stays.
      const other = '{"spec":{"template":{"spec":{"containers":[{"name":"other","image":"other:1"}]}}}}'
      await kubectl('patch', 'deployment', 'web', '-p', other)
      expect(await kubectl('apply', '-f', file(deployment('web:3')))).toBe('deployment.apps/web configured\n')
      const names = await kubectl('get', 'deployment', 'web', '-o', 'jsonpath={.spec.template.spec.containers[*].name}')
      expect(names.split(' ').sort()).toEqual(['other', 'side', 'web'])
    })

    it('applies custom kinds', async () => {
      const widget = (size: string) =>
        file(`apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: ${size}}\n`)
      expect(await kubectl('apply', '-f', widget('1'))).toBe('widget.example.com/w created\n')
      expect(await kubectl('apply', '-f', widget('2'))).toBe('widget.example.com/w configured\n')
      expect(await kubectl('apply', '-f', widget('2'))).toBe('widget.example.com/w unchanged\n')
      await expect(kubectl('apply', '-f', widget('large'))).rejects.toThrow('spec.size')
    })

    it('refuses fields nobody knows, unless told not to', async () => {
      const manifest = file(deployment('web:1', ', imagee: x'))
      await expect(kubectl('apply', '-f', manifest)).rejects.toThrow('unknown field')
      const before = readFileSync(manifest, 'utf8')
      await kubectl('apply', '-f', manifest, '--validate=ignore', '--dry-run=server')
      expect(readFileSync(manifest, 'utf8')).toBe(before)
    })

    it.each([
      ['namespace', 'one'],
      ['configmap', 'one', '--from-literal=a=b'],
      ['secret', 'generic', 'one', '--from-literal=a=b'],
      ['serviceaccount', 'one'],
      ['role', 'one', '--verb=get', '--resource=pods'],
      ['rolebinding', 'one', '--role=one', '--user=joe'],
      ['clusterrole', 'one', '--verb=get', '--resource=pods'],
      ['clusterrolebinding', 'one', '--clusterrole=one', '--user=joe'],
      ['deployment', 'one', '--image=web:1', '--replicas=2'],
      ['service', 'clusterip', 'one', '--tcp=80:8080'],
    ])('creates a %s', async (...args) => {
      const dry = await kubectl('create', ...args, '--dry-run=server')
      expect(dry).toMatch(/created \(server dry run\)/)
      expect(await kubectl('create', ...args)).toMatch(/\/one created/)
    })

    it('says who one is and what one may do', async () => {
      expect(await kubectl('auth', 'whoami')).toMatch(/Username +joe/)
      expect(await kubectl('auth', 'can-i', 'list', 'pods')).toBe('yes\n')
      expect(await kubectl('auth', 'can-i', '--list')).toMatch(/\*\.\*/)
    })
  })
})
