import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * A client in Java: it reads work as lines of JSON and answers each with one; what it is, lab/faults/clients/work.py
 * says.
 */
public class Clients {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream ANSWERS = System.out;
    private static final int KEYS = 64;

    private final String serviceUrl;
    private final String token;
    private final PulsarClient client;
    private PulsarClient transacting;

    private Clients(String serviceUrl, String token) throws Exception {
        this.serviceUrl = serviceUrl;
        this.token = token;
        this.client = connect();
    }

    /** Until its input ends, or until it is killed. */
    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err); // whatever logs must not speak between answers
        Clients clients = new Clients(arguments[0], arguments.length > 1 ? arguments[1] : "");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode work = JSON.readTree(line);
            begin(() -> clients.answer(work));
        }
        System.exit(0);
    }

    private void answer(JsonNode work) {
        ObjectNode answer = JSON.createObjectNode().put("number", work.get("number").asInt());
        try {
            carryOut(work);
        } catch (Exception error) {
            answer.put("error", error.toString());
        }
        synchronized (ANSWERS) {
            ANSWERS.println(answer);
            ANSWERS.flush();
        }
    }

    private void carryOut(JsonNode work) throws Exception {
        switch (work.get("do").asText()) {
            case "Sending" -> send(work);
            case "Flowing" -> {
                Producer<byte[]> producer = producer(work).create();
                begin(() -> flow(producer, work));
            }
            case "Taking" -> {
                if (work.get("lives_s").asDouble() > 0) {
                    begin(() -> crashAgainAndAgain(work));
                } else {
                    Consumer<byte[]> consumer = subscribe(client, work);
                    begin(() -> take(consumer, work, Long.MAX_VALUE));
                }
            }
            case "Crowd" -> crowd(work);
            case "Transacting" -> transact(work);
            default -> throw new IllegalArgumentException("no such work");
        }
    }

    private PulsarClient connect() throws Exception {
        return builder().build();
    }

    private ClientBuilder builder() throws Exception {
        ClientBuilder builder = PulsarClient.builder().serviceUrl(serviceUrl);
        if (!token.isEmpty()) {
            builder.authentication(AuthenticationFactory.token(token));
        }
        return builder;
    }

    private synchronized PulsarClient transactional() throws Exception {
        if (transacting == null) {
            transacting = builder().enableTransaction(true).build();
        }
        return transacting;
    }

    private ProducerBuilder<byte[]> producer(JsonNode work) {
        ProducerBuilder<byte[]> builder = client.newProducer().topic(work.get("topic").asText()).blockIfQueueFull(true);
        if (!work.get("batched").isNull()) {
            builder.enableBatching(work.get("batched").asBoolean());
        }
        return builder;
    }

    private void send(JsonNode work) throws Exception {
        ProducerBuilder<byte[]> builder = producer(work);
        if (!work.get("batch_messages").isNull()) {
            builder.batchingMaxMessages(work.get("batch_messages").asInt());
        }
        long delay = (long) (1000 * work.get("delay_s").asDouble());
        byte[] content = new byte[work.get("size").asInt()];
        int count = work.get("count").asInt();
        List<CompletableFuture<MessageId>> sent = new ArrayList<>(count);
        try (Producer<byte[]> producer = builder.create()) {
            for (int number = 0; number < count; number++) {
                TypedMessageBuilder<byte[]> message = producer.newMessage().key("key-" + number % KEYS).value(content);
                if (delay > 0) {
                    message.deliverAfter(delay + 1000L * number, TimeUnit.MILLISECONDS);
                }
                sent.add(message.sendAsync());
            }
            producer.flush();
            CompletableFuture.allOf(sent.toArray(new CompletableFuture[0])).get(120, TimeUnit.SECONDS);
        }
    }

    private void flow(Producer<byte[]> producer, JsonNode work) throws Exception {
        byte[] content = new byte[work.get("size").asInt()];
        double rate = work.get("rate").asDouble();
        long began = System.nanoTime();
        for (long sent = 0;; Thread.sleep(100)) {
            for (long due = (long) (rate * (System.nanoTime() - began) / 1e9); sent < due; sent++) {
                producer.newMessage().key("key-" + sent % KEYS).value(content).sendAsync();
            }
        }
    }

    private static Consumer<byte[]> subscribe(PulsarClient client, JsonNode work) throws Exception {
        ConsumerBuilder<byte[]> builder = client.newConsumer()
                .topic(work.get("topic").asText())
                .subscriptionName(work.get("subscription").asText())
                .subscriptionType(SubscriptionType.valueOf(work.get("kind").asText()))
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .negativeAckRedeliveryDelay((long) (1000 * work.get("redelivery_s").asDouble()), TimeUnit.MILLISECONDS);
        if (!work.get("queue").isNull()) {
            builder.receiverQueueSize(work.get("queue").asInt());
        }
        return builder.subscribe();
    }

    private static void take(Consumer<byte[]> consumer, JsonNode work, long until) throws Exception {
        String acknowledging = work.get("acknowledge").asText();
        long most = work.get("most").isNull() ? Long.MAX_VALUE : work.get("most").asLong();
        long pause = (long) (1000 * work.get("pause_s").asDouble());
        long every = (long) (1000 * work.get("every_s").asDouble());
        List<Message<byte[]>> held = new ArrayList<>();
        long acknowledgedAt = System.currentTimeMillis();
        for (long count = 0; System.currentTimeMillis() < until;) {
            Message<byte[]> message = null;
            if (count >= most) {
                Thread.sleep(200);
            } else {
                message = consumer.receive(200, TimeUnit.MILLISECONDS);
            }
            if (System.currentTimeMillis() - acknowledgedAt >= every) {
                for (Message<byte[]> each : held) {
                    consumer.acknowledgeAsync(each);
                }
                held.clear();
                acknowledgedAt = System.currentTimeMillis();
            }
            if (message == null) {
                continue;
            }
            boolean refused = acknowledging.equals("negatively")
                    || acknowledging.equals("once-again") && message.getRedeliveryCount() == 0;
            if (refused) {
                consumer.negativeAcknowledge(message);
            } else if (acknowledging.equals("later")) {
                held.add(message);
            } else if (!acknowledging.equals("never") && (!acknowledging.equals("every-other") || count % 2 == 1)) {
                consumer.acknowledgeAsync(message);
            }
            count++;
            Thread.sleep(pause);
        }
    }

    private void crashAgainAndAgain(JsonNode work) throws Exception {
        while (true) {
            // A client takes two seconds to close: for so long of each round, no consumer would be there.
            PulsarClient brief = connect();
            try (Consumer<byte[]> consumer = subscribe(brief, work)) {
                long until = System.currentTimeMillis() + (long) (1000 * work.get("lives_s").asDouble());
                take(consumer, work, until);
            } finally {
                brief.closeAsync();
            }
        }
    }

    private void crowd(JsonNode work) throws Exception {
        String topic = work.get("topic").asText();
        List<CompletableFuture<?>> connected = new ArrayList<>();
        for (int number = 0; number < work.get("producers").asInt(); number++) {
            connected.add(client.newProducer().topic(topic).createAsync());
        }
        for (int number = 0; number < work.get("consumers").asInt(); number++) {
            connected.add(client.newConsumer().topic(topic).subscriptionName("s").receiverQueueSize(1)
                    .subscriptionType(SubscriptionType.Shared)
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribeAsync());
        }
        CompletableFuture.allOf(connected.toArray(new CompletableFuture[0])).get(120, TimeUnit.SECONDS);
    }

    private void transact(JsonNode work) throws Exception {
        Producer<byte[]> producer = transactional().newProducer().topic(work.get("topic").asText())
                .sendTimeout(0, TimeUnit.SECONDS).create();
        for (int number = 0; number < work.get("left_open").asInt(); number++) {
            producer.newMessage(opened(work)).value(new byte[100]).send();
        }
        for (int number = 0; number < work.get("count").asInt(); number++) {
            commitOne(producer, work);
        }
        double rate = work.get("rate").asDouble();
        if (rate == 0) {
            producer.close();
            return;
        }
        begin(() -> {
            long began = System.nanoTime();
            for (long done = 0;; Thread.sleep(100)) {
                for (long due = (long) (rate * (System.nanoTime() - began) / 1e9); done < due; done++) {
                    commitOne(producer, work);
                }
            }
        });
    }

    private void commitOne(Producer<byte[]> producer, JsonNode work) throws Exception {
        Transaction transaction = opened(work);
        producer.newMessage(transaction).value(new byte[100]).send();
        transaction.commit().get(60, TimeUnit.SECONDS);
    }

    private Transaction opened(JsonNode work) throws Exception {
        long timeout = (long) (1000 * work.get("timeout_s").asDouble());
        return transactional().newTransaction().withTransactionTimeout(timeout, TimeUnit.MILLISECONDS).build()
                .get(60, TimeUnit.SECONDS);
    }

    private interface Task {
        void run() throws Exception;
    }

    private static void begin(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
