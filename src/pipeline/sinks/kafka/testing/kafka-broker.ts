import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../../../../platform/runtime/testing/free-port.ts'
import { freeze } from '../../../../platform/runtime/testing/freeze.ts'
import { TestAuthority } from '../../../ingest/stream/test/certificates.ts'

const assets = process.env.KAFKA_ASSETS ?? ''
const isHere =
  assets !== '' &&
  existsSync(join(assets, 'kafka_2.13-3.9.1.jar')) &&
  spawnSync('java', ['-version'], { stdio: 'ignore' }).status === 0

/** Why tests with Kafka cannot run here; undefined where they can. With CI_REQUIRE_ALL=1 they are never skipped. */
export const kafkaMissing: string | undefined =
  isHere || process.env.CI_REQUIRE_ALL === '1' ? undefined : 'there is no Kafka 3.9.1 in KAFKA_ASSETS, or no java'

/** Users of the listener with TLS. */
export const users = {
  /** may do everything */
  writer: { username: 'writer', password: 'pw-of-the-writer' },
  /** may do nothing */
  stranger: { username: 'stranger', password: 'pw-of-the-stranger' },
} as const

export interface TestKafka extends AsyncDisposable {
  /** in the clear, as nobody */
  readonly address: string
  /** TLS, with SCRAM-SHA-256 or PLAIN */
  readonly secure: string
  /** in the clear; the broker says there that it is at 169.254.169.254 */
  readonly renamed: string
  /** of the authority that signed its certificate, PEM */
  readonly ca: string
  /** kill -9; what is in topics is on disk */
  kill(): Promise<void>
  start(): Promise<void>
  /** it runs no further, and takes what the system takes for it, until `thaw` */
  freeze(): Promise<void>
  thaw(): void
  /** What its own console consumer prints of a topic from the beginning: a line of so many messages, with headers, key and value. */
  consoleConsumer(topic: string, messages: number): Promise<string>
}

/** Short-lived programs are not worth compiling. */
const JAVA = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', `${assets}/*`]
const STARTED = /Kafka Server started/

/** A real broker in KRaft mode on free ports of 127.0.0.1. */
export async function startKafka(): Promise<TestKafka> {
  const directory = await mkdtemp(join(tmpdir(), 'kafka-'))
  const [client, secure, renamed, controller] = [await freePort(), await freePort(), await freePort(), await freePort()]
  const authority = await TestAuthority.make('kafka')
  const { cert, key } = await authority.sign('broker', 'server')
  await writeFile(join(directory, 'broker.pem'), `${key}${cert}`)
  await writeFile(join(directory, 'log4j.properties'), LOGGING)
  await writeFile(join(directory, 'server.properties'), settings(directory, { client, secure, renamed, controller }))
  await format(directory)
  let child: ChildProcess | undefined
  const kill = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  const start = async () => {
    child = spawn('java', ['-Xmx400m', ...logged(directory), 'kafka.Kafka', 'server.properties'], {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    await untilStarted(child)
  }
  try {
    await start()
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    throw error
  }
  return {
    address: `127.0.0.1:${client}`,
    secure: `127.0.0.1:${secure}`,
    renamed: `127.0.0.1:${renamed}`,
    ca: authority.pem,
    kill,
    start,
    freeze: () => freeze(child),
    thaw: () => void child?.kill('SIGCONT'),
    consoleConsumer: (topic, messages) => consoleConsumer(directory, `127.0.0.1:${client}`, topic, messages),
    async [Symbol.asyncDispose]() {
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const logged = (directory: string) => [`-Dlog4j.configuration=file:${directory}/log4j.properties`, ...JAVA]

async function format(directory: string): Promise<void> {
  const scram = Object.values(users).flatMap(({ username, password }) => [
    '--add-scram',
    `SCRAM-SHA-256=[name=${username},password=${password}]`,
  ])
  const tool = ['kafka.tools.StorageTool', 'format', '--cluster-id', 'Q2x1c3RlclB1bHNlVGVzdA', '--config']
  await promisify(execFile)('java', [...logged(directory), ...tool, 'server.properties', ...scram], { cwd: directory })
}

async function untilStarted(child: ChildProcess): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    const hear = (text: Buffer) => {
      said = (said + text.toString()).slice(-8000)
      if (STARTED.test(said)) resolve()
    }
    child.stdout?.on('data', hear)
    child.stderr?.on('data', hear)
    child.once('exit', () => reject(new Error(`Kafka ended: ${said}`)))
  })
}

async function consoleConsumer(directory: string, address: string, topic: string, messages: number): Promise<string> {
  const shown = ['print.key=true', 'print.headers=true'].flatMap((one) => ['--property', one])
  const { stdout } = await promisify(execFile)(
    'java',
    [
      ...logged(directory),
      'org.apache.kafka.tools.consumer.ConsoleConsumer',
      ...['--bootstrap-server', address, '--topic', topic, '--from-beginning', '--max-messages', String(messages)],
      ...['--timeout-ms', '60000', ...shown],
    ],
    { cwd: directory, maxBuffer: 64 * 2 ** 20 },
  )
  return stdout
}

const LOGGING = `log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m (%c)%n
log4j.logger.kafka.server.KafkaRaftServer=INFO
`

function settings(directory: string, ports: Readonly<Record<'client' | 'secure' | 'renamed' | 'controller', number>>) {
  const { client, secure, renamed, controller } = ports
  const { writer, stranger } = users
  const plain = `org.apache.kafka.common.security.plain.PlainLoginModule required user_${writer.username}="${writer.password}" user_${stranger.username}="${stranger.password}";`
  return `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=CLIENT
listeners=CLIENT://127.0.0.1:${client},SECURE://127.0.0.1:${secure},RENAMED://127.0.0.1:${renamed},CONTROLLER://127.0.0.1:${controller}
advertised.listeners=CLIENT://127.0.0.1:${client},SECURE://127.0.0.1:${secure},RENAMED://169.254.169.254:9092
listener.security.protocol.map=CLIENT:PLAINTEXT,SECURE:SASL_SSL,RENAMED:PLAINTEXT,CONTROLLER:PLAINTEXT
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=${directory}/broker.pem
listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config=${plain}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:${writer.username}
log.dirs=${directory}/data
auto.create.topics.enable=false
num.partitions=3
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=500
`
}
