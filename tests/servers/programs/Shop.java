// SPDX-License-Identifier: LGPL-2.1-or-later
// An HTTP server and its clients in one process. Requests share a lock and are entered into a file, now and then to the disk.
import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;

public class Shop {
        static final int CLIENTS = 6, WORKERS = 4, SYNC_EVERY = 50;

        final ReentrantLock lock = new ReentrantLock();
        final FileChannel journal;
        long sold;

        Shop(String path) throws IOException {
                journal = FileChannel.open(new File(path).toPath(), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        }

        void sell() throws Exception {
                lock.lock();
                try {
                        journal.write(ByteBuffer.wrap(("sold " + ++sold + "\n").getBytes()));
                        if (sold % SYNC_EVERY == 0)
                                journal.force(false);
                        Thread.sleep(1);
                } finally {
                        lock.unlock();
                }
        }

        static void buy(URL url) {
                try {
                        for (;;)
                                url.openStream().readAllBytes();
                } catch (IOException e) {
                        e.printStackTrace();
                        System.exit(1);
                }
        }

        public static void main(String[] arguments) throws Exception {
                Shop shop = new Shop(arguments[0]);
                HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);

                server.setExecutor(Executors.newFixedThreadPool(WORKERS));
                server.createContext("/", exchange -> {
                        try {
                                shop.sell();
                                // No body: it would be a second packet, which waits for the first one's acknowledgement.
                                exchange.sendResponseHeaders(204, -1);
                        } catch (Exception e) {
                                throw new IOException(e);
                        } finally {
                                exchange.close();
                        }
                });
                server.start();

                URL url = new URL("http://127.0.0.1:" + server.getAddress().getPort() + "/");
                for (int i = 0; i < CLIENTS; i++)
                        new Thread(() -> buy(url), "buyer-" + i).start();
                System.out.println("ready " + server.getAddress().getPort());
        }
}
