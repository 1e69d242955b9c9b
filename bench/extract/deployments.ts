/** Deployments as an API server gives them, about 3.4 kB of JSON each: labels, two containers, probes, conditions, fields of their managers. */
export function deployments(count: number): readonly unknown[] {
  // Through text, as they come: whatever else V8 shares between literals would flatter the numbers.
  return Array.from({ length: count }, (_, i) => JSON.parse(JSON.stringify(deployment(i))) as unknown)
}

function deployment(i: number): object {
  const labels = {
    app: `web-${i}`,
    team: `team-${i % 50}`,
    'app.kubernetes.io/name': 'web',
    'app.kubernetes.io/version': `1.4.${i}`,
  }
  const name = `web-${i}`
  const at = '2026-01-01T00:00:00Z'
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: {
      ...{ name, namespace: `team-${i % 50}`, uid: `5d1c9c6e-9d0a-4a57-8d43-${String(i).padStart(12, '0')}`, labels },
      ...{ resourceVersion: String(100_000 + i), generation: 3, creationTimestamp: at },
      annotations: { 'deployment.kubernetes.io/revision': '3', 'meta.helm.sh/release-name': 'web' },
      managedFields: [
        {
          manager: 'kubectl',
          operation: 'Apply',
          time: at,
          fieldsV1: { 'f:spec': { 'f:replicas': {}, 'f:template': { 'f:spec': { 'f:containers': {} } } } },
        },
      ],
    },
    spec: {
      ...{
        replicas: 3,
        revisionHistoryLimit: 10,
        progressDeadlineSeconds: 600,
        selector: { matchLabels: { app: name } },
      },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      template: {
        metadata: { labels, annotations: { 'checksum/config': `abcdef0123456789${i}` } },
        spec: {
          ...{
            serviceAccountName: 'web',
            terminationGracePeriodSeconds: 30,
            restartPolicy: 'Always',
            dnsPolicy: 'ClusterFirst',
          },
          ...{
            schedulerName: 'default-scheduler',
            securityContext: {},
            volumes: [{ name: 'config', configMap: { name: 'web', defaultMode: 420 } }],
          },
          containers: [
            web(i),
            {
              name: 'proxy',
              image: 'envoy:1.30',
              ports: [{ containerPort: 9901 }],
              env: [{ name: 'PROXY_SECRET', value: `s3cret-${i}` }],
            },
          ],
        },
      },
    },
    status: {
      ...{
        observedGeneration: 3,
        replicas: 3,
        readyReplicas: 2,
        availableReplicas: 2,
        updatedReplicas: 3,
        unavailableReplicas: 1,
      },
      conditions: [
        {
          type: 'Available',
          status: 'True',
          lastUpdateTime: at,
          lastTransitionTime: at,
          reason: 'MinimumReplicasAvailable',
          message: 'Deployment has minimum availability.',
        },
        {
          type: 'Progressing',
          status: 'True',
          lastUpdateTime: at,
          lastTransitionTime: at,
          reason: 'NewReplicaSetAvailable',
          message: `ReplicaSet "${name}-7d9" has successfully progressed.`,
        },
      ],
    },
  }
}

const web = (i: number): object => ({
  ...{
    name: 'web',
    image: `registry.example.com/team/web:1.4.${i}`,
    imagePullPolicy: 'IfNotPresent',
    args: ['--listen=:8080', '--verbose'],
  },
  env: [
    { name: 'DB_PASSWORD', value: `hunter-${i}` },
    { name: 'LOG_LEVEL', value: 'info' },
    { name: 'DATABASE_URL', value: `postgres://web:hunter-${i}@db:5432/web` },
    { name: 'API_TOKEN', valueFrom: { secretKeyRef: { name: 'web', key: 'token' } } },
  ],
  ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
  resources: { limits: { memory: '1Gi', cpu: '500m' }, requests: { memory: '512Mi', cpu: '100m' } },
  readinessProbe: {
    httpGet: { path: '/ready', port: 'http', scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    failureThreshold: 3,
  },
  volumeMounts: [{ name: 'config', mountPath: '/etc/web' }],
  ...{ terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' },
})
