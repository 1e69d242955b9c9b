import { agentRightsText } from '#model'
import { plainEnvironment } from './agent-objects.ts'
import { type Joining, pick, quoted } from './join.ts'

export interface JoiningByContainer extends Joining {
  /** with its tag */
  readonly image: string
  readonly engine: 'docker' | 'podman'
}

/** In the container. */
const KUBECONFIG = '/kubeconfig'
const CA_FILE = '/ingester-ca.pem'

/**
 * One line for a shell on any machine with Docker or Podman and a kubeconfig of the member: the agent in a container of its own, as
 * the person who starts it, with little. The buffer is a volume that outlives it. Begins with a space, as joinCommand does.
 */
export function joinContainer(joining: JoiningByContainer): string {
  const { cluster, token, joins, tls, caPem, caFingerprint, image, engine } = joining
  const isPinned = tls && caFingerprint !== undefined
  const caFile = !joins && tls && caPem !== undefined && !isPinned ? `clusterpulse-${cluster}-ca.pem` : undefined
  const environment = [
    ...(joins
      ? ([
          ['JOIN_TOKEN', token],
          ['AGENT_RIGHTS', agentRightsText(joins.rights)],
        ] as const)
      : plainEnvironment(pick(joining), caFile && CA_FILE)),
    ...(joins ? [] : [['COLLECTOR_TOKEN', token] as const]),
    ...(isPinned && !joins ? [['INGESTER_CA_FINGERPRINT', caFingerprint] as const] : []),
    ['BUFFER_DIR', '/data'] as const,
    ['KUBECONFIG', KUBECONFIG] as const,
    // On the network of the machine, where several agents may run: nobody asks for a certain port.
    ['HEALTH_ADDRESS', '127.0.0.1:0'] as const,
  ]
  const name = quoted(`clusterpulse-agent-${cluster}`)
  const words = [
    `${engine} run -d --name ${name} --restart unless-stopped`,
    // A kubeconfig often says 127.0.0.1, as that of k3s and kind does, and only its owner may read it.
    '--network host --user "$(id -u):$(id -g)"',
    // Podman knows keep-id for people only, not for root.
    ...(engine === 'podman' ? ['--userns "$([ "$(id -u)" = 0 ] && echo host || echo keep-id)"'] : []),
    '--read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --security-opt label=disable',
    `-v ${name}:/data -v "\${KUBECONFIG:-$HOME/.kube/config}":${KUBECONFIG}:ro`,
    ...(caFile === undefined ? [] : [`-v "$PWD"/${quoted(caFile)}:${CA_FILE}:ro`]),
    ...environment.map(([variable, value]) => `-e ${variable}=${quoted(value)}`),
    `${quoted(image)} ${joins ? 'join' : 'agent'}`,
  ]
  const file =
    caFile === undefined
      ? ''
      : `echo ${Buffer.from(caPem ?? '').toString('base64')} | base64 -d > ${quoted(caFile)} && `
  return ` ${file}${words.join(' ')}`
}
