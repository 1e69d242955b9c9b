import { gzipSync } from 'node:zlib'

/** An object with a secret in many places, and where they are: keys and indexes from the object. */
export interface Planted {
  readonly kind: string
  readonly group: string
  readonly object: Readonly<Record<string, unknown>>
  readonly places: readonly (readonly (string | number)[])[]
}

const metadata = (name: string, more: object = {}) => ({
  name,
  namespace: 'shop',
  uid: `uid-${name}`,
  labels: { app: 'web' },
  ...more,
})
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** Helm's form: base64 of gzip of JSON; of a Secret base64 once more. */
export function packed(release: unknown, isSecret = true): string {
  const once = gzipSync(JSON.stringify(release)).toString('base64')
  return isSecret ? base64(once) : once
}

const pem = (text: string) => `-----BEGIN RSA PRIVATE KEY-----\n${text}\n-----END RSA PRIVATE KEY-----\n`

/** The same world around any secret: nothing else depends on it. */
export function planted(secret: string): readonly Planted[] {
  const applied = (kind: string, more: object) => ({
    'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({
      apiVersion: 'v1',
      kind,
      metadata: { name: 'x' },
      ...more,
    }),
  })
  const env = [
    { name: 'DB_PASSWORD', value: secret },
    { name: 'plain', value: `postgres://web:${secret}@db.shop:5432/web?sslmode=off` },
    { name: 'API_TOKEN', valueFrom: { secretKeyRef: { name: 'web', key: secret } } },
    { name: 'DSN', value: `Server=db;User=web;Password=${secret};Database=web` },
    { name: 'GO_DSN', value: `web:${secret}@tcp(db:3306)/web` },
    { name: 'API_TOKENS', value: secret },
    { name: 'CLIENT_KEY', value: base64(pem(secret)) },
    { name: 'db_password', default: secret, defaultValue: secret, values: [secret] },
    { name: 'JSON', value: JSON.stringify({ db: { user: 'web', password: secret } }) },
  ]
  const container = {
    ...{
      name: 'web',
      image: 'web:1',
      env,
      command: ['serve', '--password', secret],
      args: [`--token=${secret}`, `mysql --password ${secret} -v`],
    },
    livenessProbe: { httpGet: { path: '/', httpHeaders: [{ name: 'Authorization', value: `Bearer ${secret}` }] } },
  }
  const at = (...keys: (string | number)[]) => ['spec', 'template', 'spec', 'containers', 0, ...keys]
  const values = { db: { password: secret, host: 'db' }, innocent: secret }
  const release = {
    ...{
      name: 'web',
      namespace: 'shop',
      version: 3,
      config: values,
      manifest: `kind: Secret\ndata:\n  a: ${secret}`,
      hooks: [{ manifest: secret }],
    },
    info: { status: 'deployed', notes: `Log in with admin / ${secret}`, resources: [{ data: secret }] },
    chart: {
      metadata: { name: 'web', version: '1.2.3' },
      values,
      templates: [{ data: secret }],
      files: [{ data: secret }],
      raw: [secret],
      schema: base64(JSON.stringify({ default: secret })),
    },
  }
  return [
    {
      ...{ kind: 'Secret', group: '' },
      object: {
        ...{
          apiVersion: 'v1',
          kind: 'Secret',
          type: 'Opaque',
          data: { innocent: base64(secret), password: secret },
          stringData: { plain: secret },
        },
        metadata: metadata('web', {
          annotations: {
            ...applied('Secret', { data: { a: secret }, stringData: { b: secret } }),
            // As tools of others keep what they applied.
            'objectset.rio.cattle.io/applied': packed({ kind: 'Secret', data: { a: secret } }, false),
            'example.com/was': base64(JSON.stringify({ data: { a: secret } })),
            'example.com/escaped': JSON.stringify(JSON.stringify({ data: { a: secret } })),
          },
        }),
      },
      places: [
        ['data', 'innocent'],
        ['data', 'password'],
        ['stringData', 'plain'],
        ['metadata', 'annotations', 'kubectl.kubernetes.io/last-applied-configuration'],
      ],
    },
    {
      // As an item of a list: it does not say what it is.
      ...{
        kind: 'Secret',
        group: '',
        object: { metadata: metadata('item'), data: { innocent: base64(secret), plain: secret } },
      },
      places: [
        ['data', 'innocent'],
        ['data', 'plain'],
      ],
    },
    {
      ...{ kind: 'Deployment', group: 'apps' },
      object: {
        ...{
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          spec: { replicas: 2, template: { spec: { containers: [container] } } },
          status: { readyReplicas: 2 },
        },
        metadata: metadata('deployed', {
          annotations: { ...applied('Deployment', { spec: { env } }), 'example.com/api-key': secret },
        }),
      },
      places: [
        ...env.map((one, i) => at('env', i, ['valueFrom', 'default'].find((key) => key in one) ?? 'value')),
        ...[at('env', 8, 'defaultValue'), at('env', 8, 'values', 0)],
        at('env', 2, 'valueFrom', 'secretKeyRef', 'key'),
        ...[at('command', 2), at('args', 0), at('args', 1), at('livenessProbe', 'httpGet', 'httpHeaders', 0, 'value')],
        ...[
          ['metadata', 'annotations', 'example.com/api-key'],
          ['metadata', 'annotations', 'kubectl.kubernetes.io/last-applied-configuration'],
        ],
      ],
    },
    {
      ...{ kind: 'ConfigMap', group: '' },
      object: {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('settings') },
        data: {
          'app.yaml': `db:\n  host: db\n  password: ${secret}\n  port: 5432\n`,
          'block.yaml': `db:\n  password: |\n    ${secret}\n    ${secret}\n  port: 5432\n`,
          'app.env': `HOST=db\nDB_PASS=${secret}\nPORT=1\n`,
          'app.json': JSON.stringify({ nested: [{ clientSecret: secret }] }),
          id_rsa: `-----BEGIN OPENSSH PRIVATE KEY-----\n${secret}\n-----END OPENSSH PRIVATE KEY-----\n`,
          'manifest.yaml': `apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\nstringData:\n  innocent: ${secret}\n`,
          'manifest.json': JSON.stringify({ kind: 'List', items: [{ kind: 'Secret', data: { innocent: secret } }] }),
          'run.sh': `curl -u me:${secret} https://x && curl -H "Authorization: Bearer ${secret}"`,
          'git.url': `https://${secret}@git.example.com/x.git`,
          'password.txt': secret,
          'kubeconfig.yaml': `users:\n- name: a\n  user:\n    client-key-data: ${base64(pem(secret))}\n`,
          'hive-site.xml': `<property><name>x.ConnectionPassword</name><value>${secret}</value></property>`,
          'list.yaml': `passwords:\n- a\n- ${secret}\ncredentials:\n  word: ${secret}\n`,
          'app.properties': `db.password=\\\n  ${secret}\n`,
          'main.tf': `db_password = <<EOT\n${secret}\nEOT\n`,
          'docker.json': JSON.stringify({ auths: { [`https://me:${secret}@registry`]: {} } }),
        },
        binaryData: { id_rsa: base64(pem(secret)) },
      },
      places: [
        'app.yaml',
        'block.yaml',
        'app.env',
        'app.json',
        'id_rsa',
        'manifest.yaml',
        'manifest.json',
        'run.sh',
        'git.url',
        'password.txt',
        ...['kubeconfig.yaml', 'hive-site.xml', 'list.yaml', 'app.properties', 'main.tf', 'docker.json'],
      ]
        .map((name) => ['data', name])
        .concat([['binaryData', 'id_rsa']]),
    },
    {
      ...{ kind: 'ManifestWork', group: 'work.open-cluster-management.io' },
      object: {
        ...{ kind: 'ManifestWork', metadata: metadata('work') },
        spec: {
          workload: { manifests: [{ apiVersion: 'v1', kind: 'Secret', data: { innocent: secret } }] },
          tls: { key: secret },
          auth: { innocent: secret },
        },
      },
      places: [
        ['spec', 'workload', 'manifests', 0, 'data', 'innocent'],
        ['spec', 'tls', 'key'],
        ['spec', 'auth', 'innocent'],
      ],
    },
    {
      ...{ kind: 'Secret', group: '' },
      object: {
        ...{
          apiVersion: 'v1',
          kind: 'Secret',
          type: 'helm.sh/release.v1',
          metadata: metadata('release', { labels: { owner: 'helm' } }),
          data: { release: packed(release) },
        },
      },
      places: [['data', 'release']],
    },
    {
      ...{ kind: 'ConfigMap', group: '' },
      object: {
        kind: 'ConfigMap',
        metadata: metadata('release', { labels: { owner: 'helm' } }),
        data: { release: packed(release, false) },
      },
      places: [['data', 'release']],
    },
  ]
}
