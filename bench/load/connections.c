/* New connections, one after the other in each of a few threads: TLS handshakes, or log-ins by SCRAM-SHA-512.
 *
 *   connections tls   HOST PORT SECONDS THREADS CA_FILE
 *   connections scram HOST PORT SECONDS THREADS USER PASSWORD
 *
 * tls:   connect, a whole handshake (no session is resumed) in which the broker's certificate is verified, ApiVersions,
 *        close. The response shows that the broker has finished the handshake, too: with TLS 1.3 the client is first.
 * scram: connect, ApiVersions, SaslHandshake, SaslAuthenticate twice, check the broker's signature, close. The salted
 *        password, which costs the client thousands of hashes, is computed once in each thread: the broker never does.
 *
 * It prints one JSON object. Anything but a connection that is established is a failure.
 */
#define _GNU_SOURCE
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire.h"

enum { API_VERSIONS = 18, SASL_HANDSHAKE = 17, SASL_AUTHENTICATE = 36 };
enum { THREAD_LIMIT = 64, DIGEST = 64, TEXT = 1024, SALT_LIMIT = 128, RESPONSE_LIMIT = 1 << 16 };

static const char *host, *user, *password;
static int port, with_tls;
static int64_t end_ns;
static SSL_CTX *context;

/* A connection, encrypted if `tls` is not NULL. */
typedef struct {
    int socket;
    SSL *tls;
} channel;

/* What a thread knows, and what it has done. */
typedef struct {
    long connections;
    char salt[SALT_LIMIT]; /* as the broker sent it */
    uint8_t salted_password[DIGEST];
    buffer request;
    uint8_t response[RESPONSE_LIMIT];
} worker;

/* ---- requests ---- */

static void send_request(channel *to, const buffer *request) {
    if (to->tls == NULL ? send_all(to->socket, request->bytes, request->size) != 0
                        : SSL_write(to->tls, request->bytes, (int)request->size) != (int)request->size)
        fail("the broker closed a connection");
}

static void receive(channel *from, uint8_t *into, size_t size) {
    for (size_t have = 0; have < size;) {
        ssize_t came = from->tls == NULL ? recv(from->socket, into + have, size - have, 0)
                                         : SSL_read(from->tls, into + have, (int)(size - have));
        if (came <= 0)
            fail("the broker closed a connection");
        have += (size_t)came;
    }
}

/* Sends the request, and reads the response into the worker's buffer; where it begins, behind the correlation id. */
static reader exchange(channel *with, worker *by) {
    send_request(with, &by->request);
    uint8_t prefix[4];
    receive(with, prefix, sizeof prefix);
    int32_t size = get_int32(prefix);
    if (size < 4 || size > RESPONSE_LIMIT)
        fail("a response of %d bytes", size);
    receive(with, by->response, (size_t)size);
    return (reader){by->response + 4, by->response + size, 0};
}

static void ask_api_versions(channel *with, worker *by) {
    by->request.size = 0;
    size_t start = begin_request(&by->request, API_VERSIONS, 3);
    append_compact_string(&by->request, "kaspar-bench");
    append_compact_string(&by->request, "1");
    append_unsigned_varint(&by->request, 0); /* tagged fields */
    end_request(&by->request, start);
    reader response = exchange(with, by);
    if (read_int(&response, 2) != 0)
        fail("ApiVersions was refused");
}

/* Version 1, whose header has no tagged fields. */
static void shake_hands(channel *with, worker *by) {
    static const char mechanism[] = "SCRAM-SHA-512";
    buffer *request = &by->request;
    request->size = 0;
    append_int(request, 2 + 2 + 4 + 2 + 2 + (int)sizeof mechanism - 1, 4);
    append_int(request, SASL_HANDSHAKE, 2);
    append_int(request, 1, 2);
    append_int(request, 0, 4);  /* correlation id */
    append_int(request, -1, 2); /* no client id */
    append_int(request, (int)sizeof mechanism - 1, 2);
    append(request, mechanism, sizeof mechanism - 1);
    reader response = exchange(with, by);
    if (read_int(&response, 2) != 0)
        fail("SCRAM-SHA-512 is not enabled");
}

/* Sends one message of the exchange; the broker's is written to `reply`. */
static void authenticate(channel *with, worker *by, const char *message, char reply[TEXT]) {
    by->request.size = 0;
    size_t start = begin_request(&by->request, SASL_AUTHENTICATE, 2);
    append_compact_string(&by->request, message); /* bytes look the same */
    append_unsigned_varint(&by->request, 0);
    end_request(&by->request, start);
    reader response = exchange(with, by);
    skip_tagged_fields(&response); /* of the header */
    int64_t error = read_int(&response, 2);
    skip_compact_string(&response);
    uint64_t size = read_compact_count(&response);
    if (error != 0 || response.broken || size >= TEXT)
        fail("the log-in was refused with error code %d", (int)error);
    memcpy(reply, response.at, size);
    reply[size] = '\0';
}

/* ---- SCRAM (RFC 5802) ---- */

static void hmac(const uint8_t key[DIGEST], const char *text, size_t size, uint8_t into[DIGEST]) {
    if (HMAC(EVP_sha512(), key, DIGEST, (const uint8_t *)text, size, into, NULL) == NULL)
        fail("HMAC");
}

static void learn_salted_password(worker *by, const char *salt, int iterations) {
    if (strcmp(salt, by->salt) == 0)
        return;
    uint8_t bytes[SALT_LIMIT];
    size_t size = strlen(salt);
    if (size >= SALT_LIMIT || EVP_DecodeBlock(bytes, (const uint8_t *)salt, (int)size) < 0)
        fail("a salt that is not base64");
    size_t decoded = size / 4 * 3 - (salt[size - 1] == '=') - (salt[size - 2] == '=');
    if (PKCS5_PBKDF2_HMAC(password, -1, bytes, (int)decoded, iterations, EVP_sha512(), DIGEST, by->salted_password) !=
        1)
        fail("PBKDF2");
    strcpy(by->salt, salt);
}

static void log_in(channel *with, worker *by) {
    uint8_t random[18];
    char nonce[32], first[TEXT], reply[TEXT], signed_text[3 * TEXT], final[2 * TEXT], all_nonce[TEXT], salt[SALT_LIMIT];
    int iterations;
    RAND_bytes(random, sizeof random);
    EVP_EncodeBlock((uint8_t *)nonce, random, sizeof random);
    snprintf(first, sizeof first, "n,,n=%s,r=%s", user, nonce);
    authenticate(with, by, first, reply);
    if (sscanf(reply, "r=%1023[^,],s=%127[^,],i=%d", all_nonce, salt, &iterations) != 3)
        fail("not the first message of a SCRAM server: %s", reply);
    learn_salted_password(by, salt, iterations);

    uint8_t client_key[DIGEST], stored_key[DIGEST], server_key[DIGEST], signature[DIGEST], proof[DIGEST];
    char encoded[2 * DIGEST];
    snprintf(final, sizeof final, "c=biws,r=%s", all_nonce);
    int size = snprintf(signed_text, sizeof signed_text, "%s,%s,%s", first + strlen("n,,"), reply, final);
    hmac(by->salted_password, "Client Key", 10, client_key);
    EVP_Digest(client_key, DIGEST, stored_key, NULL, EVP_sha512(), NULL);
    hmac(stored_key, signed_text, (size_t)size, signature);
    for (int i = 0; i < DIGEST; i++)
        proof[i] = client_key[i] ^ signature[i];
    EVP_EncodeBlock((uint8_t *)encoded, proof, DIGEST);
    snprintf(final + strlen(final), sizeof final - strlen(final), ",p=%s", encoded);
    authenticate(with, by, final, reply);

    hmac(by->salted_password, "Server Key", 10, server_key);
    hmac(server_key, signed_text, (size_t)size, signature);
    EVP_EncodeBlock((uint8_t *)encoded, signature, DIGEST);
    if (strncmp(reply, "v=", 2) != 0 || strcmp(reply + 2, encoded) != 0)
        fail("the broker's signature is wrong");
}

/* ---- connections ---- */

static void open_tls(channel *with) {
    with->tls = SSL_new(context);
    SSL_set_fd(with->tls, with->socket);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(with->tls), host);
    if (SSL_connect(with->tls) != 1)
        fail("TLS: %s", ERR_reason_error_string(ERR_get_error()));
}

static void connect_once(worker *by) {
    channel with = {connect_to(host, port), NULL};
    if (with.socket == -1)
        fail("cannot connect");
    if (with_tls)
        open_tls(&with);
    ask_api_versions(&with, by);
    if (!with_tls) {
        shake_hands(&with, by);
        log_in(&with, by);
    }
    if (with.tls != NULL) {
        SSL_shutdown(with.tls);
        SSL_free(with.tls);
    }
    close(with.socket);
    by->connections++;
}

static void *work(void *opaque) {
    worker *by = opaque;
    while (now_ns() < end_ns)
        connect_once(by);
    return NULL;
}

static void trust(const char *ca_file) {
    context = SSL_CTX_new(TLS_client_method());
    if (SSL_CTX_load_verify_locations(context, ca_file, NULL) != 1)
        fail("%s has no certificate", ca_file);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

int main(int count, char **arguments) {
    signal(SIGPIPE, SIG_IGN);
    with_tls = count == 7 && strcmp(arguments[1], "tls") == 0;
    if (!with_tls && !(count == 8 && strcmp(arguments[1], "scram") == 0))
        fail("usage: connections tls|scram HOST PORT SECONDS THREADS CA_FILE|(USER PASSWORD)");
    host = arguments[2];
    port = atoi(arguments[3]);
    int threads = atoi(arguments[5]);
    if (threads < 1 || threads > THREAD_LIMIT)
        fail("1 to %d threads", THREAD_LIMIT);
    if (with_tls)
        trust(arguments[6]);
    else
        user = arguments[6], password = arguments[7];

    static worker workers[THREAD_LIMIT];
    pthread_t running[THREAD_LIMIT];
    int64_t start = now_ns();
    end_ns = start + (int64_t)(atof(arguments[4]) * 1e9);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&running[i], NULL, work, &workers[i]) != 0)
            fail("cannot start a thread");
    long connections = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
        connections += workers[i].connections;
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{\"connections\": %ld, \"seconds\": %.6f, \"rate\": %.1f}\n", connections, seconds,
           (double)connections / seconds);
    return 0;
}
