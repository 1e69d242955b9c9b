/**
 * An identity provider as companies run one: Dex, with its people and groups in OpenLDAP, in the network of pods; and what stands
 * before a page there, an edge that ends TLS as an ingress does.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Pods } from './pods.ts'
import { eventually } from './process.ts'

const slapd = '/usr/sbin/slapd'
const assets = () => process.env.SIGN_IN_ASSETS ?? ''
/** Where a program of SIGN_IN_ASSETS lies. */
export const signInProgram = (name: 'dex' | 'oauth2-proxy'): string => join(assets(), name)

/** Why the programs people sign in through are not here; undefined where they are. */
export function noSignInPrograms(): string | undefined {
  if (!assets()) return 'SIGN_IN_ASSETS is not set'
  const missing = [signInProgram('dex'), signInProgram('oauth2-proxy'), slapd].filter((path) => !existsSync(path))
  return missing.length > 0 ? `no ${missing.join(', ')}` : undefined
}

export interface Client {
  readonly id: string
  readonly secret: string
  readonly redirectUris: readonly string[]
}

export interface ProviderOptions {
  /** numbers of the pods of Dex and of OpenLDAP; `host` resolves to the first, `ldap` to the second */
  readonly pods: { readonly dex: number; readonly ldap: number }
  readonly host: string
  readonly clients: readonly Client[]
  /** name → groups; the password is `passwordOf` the name */
  readonly people: Readonly<Record<string, readonly string[]>>
}

export const passwordOf = (name: string): string => `password-of-${name}`

export interface IdentityProvider extends AsyncDisposable {
  /** PEM of the CA that signed its certificate */
  readonly caFile: string
  /** an ID token for a program, as by the password grant */
  token(person: string, client: Client): Promise<string>
  /** certificate and key for a name, by the same CA */
  certificate(name: string): { readonly cert: string; readonly key: string }
}

/** Ends with `pods`, whose programs these are. */
export async function startIdentityProvider(pods: Pods, options: ProviderOptions): Promise<IdentityProvider> {
  const folder = mkdtempSync(join(tmpdir(), 'identity-provider-'))
  const caFile = join(folder, 'ca.crt')
  const certificate = authority(folder)
  const { host, people, clients, pods: numbers } = options

  mkdirSync(join(folder, 'ldap'))
  writeFileSync(join(folder, 'slapd.conf'), slapdConf(folder))
  writeFileSync(join(folder, 'people.ldif'), ldif(people))
  run('slapadd', ['-f', join(folder, 'slapd.conf'), '-l', join(folder, 'people.ldif')])
  pods.beside(numbers.ldap, [slapd, '-f', join(folder, 'slapd.conf'), '-h', 'ldap://0.0.0.0:389', '-d', '0'])

  certificate(host)
  writeFileSync(join(folder, 'dex.json'), JSON.stringify(dexConfig(folder, host, clients, pods.address(numbers.ldap))))
  const dex = pods.beside(numbers.dex, [signInProgram('dex'), 'serve', join(folder, 'dex.json')])
  const ask = (path: string, args: readonly string[] = []) =>
    spawnSync(
      'curl',
      [
        '-sS',
        '--cacert',
        caFile,
        '--resolve',
        `${host}:443:${pods.address(numbers.dex)}`,
        ...args,
        `https://${host}${path}`,
      ],
      { encoding: 'utf8' },
    )
  await eventually(
    async () => ask('/.well-known/openid-configuration'),
    ({ stdout }) => stdout.includes('issuer'),
    60_000,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${dex.stderr()}`)
  })
  return {
    caFile,
    certificate,
    token: async (person, client) => {
      const form = {
        grant_type: 'password',
        scope: 'openid profile email groups',
        username: person,
        password: passwordOf(person),
      }
      const answer = ask('/token', [
        '-u',
        `${client.id}:${client.secret}`,
        ...Object.entries(form).flatMap((pair) => ['--data-urlencode', pair.join('=')]),
      ])
      const { id_token: token } = JSON.parse(answer.stdout) as { id_token?: string }
      if (!token) throw new Error(answer.stdout)
      return token
    },
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

function run(command: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
}

function authority(folder: string): IdentityProvider['certificate'] {
  const ec = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30']
  const at = (file: string) => join(folder, file)
  run('openssl', [...ec, '-subj', '/CN=test', '-keyout', at('ca.key'), '-out', at('ca.crt')])
  return (name) => {
    const [cert, key] = [at(`${name}.crt`), at(`${name}.key`)]
    const by = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-subj', `/CN=${name}`]
    const leaf = ['-addext', `subjectAltName=DNS:${name}`, '-addext', 'basicConstraints=critical,CA:FALSE']
    run('openssl', [...ec, ...by, ...leaf, '-keyout', key, '-out', cert])
    return { cert, key }
  }
}

const slapdConf = (folder: string): string => `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile ${folder}/slapd.pid
database mdb
suffix "dc=example,dc=com"
rootdn "cn=admin,dc=example,dc=com"
rootpw admin
directory ${folder}/ldap
`

const ldif = (people: ProviderOptions['people']): string => {
  const dn = (name: string) => `uid=${name},dc=example,dc=com`
  const groups = [...new Set(Object.values(people).flat())]
  return [
    'dn: dc=example,dc=com\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example',
    ...Object.keys(people).map(
      (name) =>
        `dn: ${dn(name)}\nobjectClass: inetOrgPerson\nuid: ${name}\ncn: ${name}\nsn: ${name}\nmail: ${name}@example.com\nuserPassword: ${passwordOf(name)}`,
    ),
    ...groups.map((group) => {
      const members = Object.keys(people).filter((name) => people[name]?.includes(group))
      return `dn: cn=${group},dc=example,dc=com\nobjectClass: groupOfNames\ncn: ${group}\n${members.map((name) => `member: ${dn(name)}`).join('\n')}`
    }),
  ].join('\n\n')
}

const dexConfig = (folder: string, host: string, clients: readonly Client[], ldap: string) => ({
  issuer: `https://${host}`,
  storage: { type: 'memory' },
  web: { https: '0.0.0.0:443', tlsCert: join(folder, `${host}.crt`), tlsKey: join(folder, `${host}.key`) },
  oauth2: { skipApprovalScreen: true, passwordConnector: 'ldap' },
  staticClients: clients.map(({ id, secret, redirectUris }) => ({ id, secret, name: id, redirectURIs: redirectUris })),
  connectors: [
    {
      type: 'ldap',
      id: 'ldap',
      name: 'Example',
      config: {
        host: `${ldap}:389`,
        insecureNoSSL: true,
        bindDN: 'cn=admin,dc=example,dc=com',
        bindPW: 'admin',
        userSearch: {
          baseDN: 'dc=example,dc=com',
          filter: '(objectClass=inetOrgPerson)',
          username: 'uid',
          idAttr: 'uid',
          emailAttr: 'mail',
          nameAttr: 'cn',
          preferredUsernameAttr: 'uid',
        },
        groupSearch: {
          baseDN: 'dc=example,dc=com',
          filter: '(objectClass=groupOfNames)',
          userMatchers: [{ userAttr: 'DN', groupAttr: 'member' }],
          nameAttr: 'cn',
        },
      },
    },
  ],
})

export interface Edge extends AsyncDisposable {
  readonly port: number
  /** where it leads: address and port of a pod */
  target: { host: string; port: number }
}

/** Ends TLS and says so in X-Forwarded-*, whatever the client said in those; other headers go through, as with an ingress. */
export async function startEdge({ cert, key }: { cert: string; key: string }, target: Edge['target']): Promise<Edge> {
  const edge = { target }
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
    const { headers, method, url: path } = request
    const forwarded = {
      'x-forwarded-for': request.socket.remoteAddress ?? '',
      'x-real-ip': request.socket.remoteAddress ?? '',
      'x-forwarded-host': headers.host ?? '',
      'x-forwarded-proto': 'https',
    }
    const up = httpRequest({ ...edge.target, method, path, headers: { ...headers, ...forwarded } }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    })
    up.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()))
    response.on('close', () => up.destroy())
    request.pipe(up)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(edge, {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}
