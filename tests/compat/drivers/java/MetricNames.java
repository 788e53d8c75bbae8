import java.io.IOException;
import java.util.TreeSet;

import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * The metrics of a running Kafka, over JMX at a port of this machine: a line for each attribute of each MBean, with the
 * MBean's name, a tab and the attribute.
 */
final class MetricNames {
    private MetricNames() {
    }

    public static void main(String[] arguments) throws IOException, JMException {
        String address = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + arguments[0] + "/jmxrmi";
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            for (ObjectName name : new TreeSet<>(server.queryNames(new ObjectName("*kafka*:*"), null))) {
                for (MBeanAttributeInfo attribute : server.getMBeanInfo(name).getAttributes()) {
                    System.out.println(name + "\t" + attribute.getName());
                }
            }
        }
    }
}
